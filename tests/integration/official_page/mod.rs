//! The official page of CrownLabs and its relay, unmodified: the requests of their GraphQL documents, for a student, a
//! manager and an administrator, each with exactly their rights.

mod administrator;
mod manager;
mod relay;
mod student;

use serde_json::{Value, json};

use self::relay::Relay;
use crate::daemon::{Daemon, Options, reserved_port};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::webhook;
use cluster::Options as ClusterOptions;

/// The value of the selector label that the page writes into each new Workspace.
const SELECTOR: &str = "production";
/// The document for administrators of a site. This test uses its rights and values.
const DOCUMENT: &str = include_str!("../../../docs/official-page.md");
/// The group of administrators in that document.
const ADMINISTRATORS: &str = "kubernetes:labs:admin";

/// The text of the document between a beginning and an end that contains these words.
fn shown((begin, end): (&str, &str), words: &str) -> &'static str {
    let blocks = DOCUMENT.split(begin).skip(1).filter_map(|rest| rest.split(end).next());
    let mut found = blocks.filter(|block| block.contains(words));
    found.next().unwrap_or_else(|| panic!("docs/official-page.md has no block with {words:?}"))
}

/// The configuration in the document, and further settings for the tests.
fn configuration(port: u16) -> String {
    let values = shown(("```yaml\n", "```"), "bypassGroups");
    let mut values: Value = serde_saphyr::from_str(values).expect("the values of the document");
    let keys = &mut values["config"];
    let webhook = &mut keys["server"]["webhook"];
    webhook["listen"] = format!("127.0.0.1:{port}").into();
    let webhook = webhook.take();
    format!("webhook: {webhook}\n{}", json!({"controllers": keys["controllers"]}))
}

/// Waits until the API server asks the daemon about Tenants and Templates.
fn await_webhooks(lab: &Lab) {
    lab.apply(&crate::tenants::tenant(SELECTOR, "probe", ""));
    let rename = json!({"spec": {"firstName": "X"}}).to_string();
    let arguments = [
        "patch",
        "tenant",
        "probe",
        "--type=merge",
        "-p",
        &rename,
        "--dry-run=server",
        "--warnings-as-errors",
    ];
    wait_until(PATIENCE, || match lab.try_kubectl(&arguments, "") {
        Err(warned) if warned.contains("webhook check overridden") => Ok(()),
        other => Err(format!("the warning to an administrator: {other:?}")),
    });
    lab.delete("tenants", "default", &["probe"]);
}

#[test]
fn the_requests_of_the_page_succeed_exactly_for_the_roles_that_may() {
    let lab = Lab::start(ClusterOptions { simulate: false, kubevirt: false, ..ClusterOptions::default() });
    lab.apply(shown(("<<'EOF'\n", "EOF\n"), "name: crownlabs-page-administrators"));
    let port = reserved_port();
    let kubeconfig = lab.service_account();
    let _daemon =
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: SELECTOR, config: &configuration(port) });
    lab.apply(&webhook::configurations(SELECTOR, port, None));
    await_webhooks(&lab);
    let root = Relay::of(&lab, "root", &[ADMINISTRATORS]);
    administrator::begin(&lab, &root);
    let eve = Relay::of(&lab, "eve", &["kubernetes:workspace-tea:manager"]);
    manager::journey(&lab, &eve);
    let ada = Relay::of(&lab, "ada", &["kubernetes:workspace-tea:user"]);
    student::journey(&lab, &ada);
    manager::refusals(&eve);
    administrator::end(&lab, &root);
}
