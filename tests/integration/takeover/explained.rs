//! `crownlabs plan --kubeconfig` and `crownlabs takeover check` explain the deletion of a personal namespace.

use std::path::Path;

use serde_json::json;

use super::check::crownlabs;
use crate::daemon::{Daemon, Options, config};
use crate::lab::Lab;
use crate::tenants::life::login;
use crate::tenants::{own_template, tenant};

const SELECTOR: &str = "explained";
const NAMESPACE: &str = "tenant-explained-ada";
const REASON: &str =
    "  note: the personal namespace is deleted, because it contains neither Instances nor Templates";
const OFF: &str =
    "  note: spec.personalWorkspace has no effect: controllers.tenant.personalWorkspace.enabled is false";

/// The configuration with personal workspaces on or off.
fn keys(is_on: bool) -> String {
    json!({"controllers": {"tenant": {"personalWorkspace": {"enabled": is_on}}}}).to_string()
}

/// The lines about the Tenant in the output of `plan` and of `takeover check`.
fn told(lab: &Lab, file: &Path) -> [String; 2] {
    [&["plan"][..], &["takeover", "check"]].map(|arguments| {
        let (_, text) = crownlabs(arguments, file, &lab.admin());
        let (_, rest) =
            text.split_once("Tenant explained.ada (tenant)\n").unwrap_or_else(|| panic!("{text}"));
        rest.lines().take_while(|line| !line.is_empty()).flat_map(|line| [line, "\n"]).collect()
    })
}

#[test]
fn the_deletion_of_a_personal_namespace_is_explained_and_a_template_prevents_it() {
    let lab = Lab::shared();
    let kubeconfig = lab.service_account();
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: SELECTOR, config: &keys(true) });
    lab.apply(&tenant(SELECTOR, "explained.ada", ", personalWorkspace: {cpu: 1, memory: 1Gi, instances: 1}"));
    let binding = "crownlabs-manage-templates";
    lab.await_value("rolebindings", NAMESPACE, binding, "/subjects/0/name", "explained.ada");
    drop(daemon);
    login(&lab, "explained.ada", -2 * 24 * 3600);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("crownlabs.yaml");
    std::fs::write(&file, config(SELECTOR, &keys(false))).expect("written");
    let deletion = format!("\ndelete Namespace {NAMESPACE}\n");
    for text in told(&lab, &file) {
        assert!(text.contains(&deletion) && text.contains(REASON) && text.contains(OFF), "{text}");
    }
    lab.apply(&own_template(NAMESPACE, "mine"));
    for text in told(&lab, &file) {
        assert!(!text.contains(&deletion) && !text.contains(REASON) && text.contains(OFF), "{text}");
    }
}
