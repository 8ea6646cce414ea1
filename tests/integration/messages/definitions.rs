//! CRDs that are changed while the daemon runs.
use super::{await_line, logged};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, crd_files};
use crate::takeover::check::store_older_version;
use cluster::Options as ClusterOptions;

const TENANTS: &str = "tenants.crownlabs.polito.it";
const WORKSPACES: &str = "workspaces.crownlabs.polito.it";

#[test]
fn a_crd_that_is_downgraded_or_removed_is_named_with_the_version_to_apply() {
    let lab = Lab::start(ClusterOptions { simulate: false, kubevirt: false, ..ClusterOptions::default() });
    let kubeconfig = lab.service_account();
    let daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "crds", config: "" });
    assert!(!daemon.ready().1.contains("CRDs: "), "{}", daemon.ready().1);
    let version = env!("CARGO_PKG_VERSION");

    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let patch = format!(r#"[{{"op": "remove", "path": "{status}/conditions"}}]"#);
    lab.kubectl(&["patch", "crd", TENANTS, "--type=json", "-p", &patch]);
    let older = format!(
        "The CRD {TENANTS} is older than this daemon: the API server drops the fields status.conditions; apply the CRDs of \
         version {version}."
    );
    await_line(&daemon, &["[!] CRDs: ", &older]);
    await_line(&daemon, &["WARN", &older]);

    store_older_version(&lab);
    let stored = "Objects of the CRD sharedvolumes.crownlabs.polito.it may be stored as v1alpha1.";
    await_line(&daemon, &["[!] CRDs: ", &older, stored]);
    assert_eq!(daemon.ready().0, 200, "the loops work");

    // The Workspaces of the daemon's version are no longer served.
    let crd = lab.get("customresourcedefinitions", "", WORKSPACES).expect("the CRD");
    let name = crd["spec"]["versions"][0]["name"].as_str().expect("a name").to_owned();
    let mut versions = crd["spec"]["versions"].clone();
    let mut newer = versions[0].clone();
    newer["name"] = "v9".into();
    newer["storage"] = false.into();
    versions[0]["served"] = false.into();
    versions.as_array_mut().expect("versions").push(newer);
    let spec = serde_json::json!({"spec": {"versions": versions}}).to_string();
    lab.patch("customresourcedefinitions", "", WORKSPACES, &spec);
    let unserved = format!(
        "The CRD {WORKSPACES} does not serve the version {name}, which this daemon uses; apply the CRDs of version {version}."
    );
    await_line(&daemon, &["[!] CRDs: ", &unserved]);

    lab.kubectl(&["delete", "crd", "instancesnapshots.crownlabs.polito.it"]);
    let missing = "waiting for CRDs that are not installed: instancesnapshots.crownlabs.polito.it";
    await_line(&daemon, &["[-] snapshot: ", missing]);

    let status = r#"{"status": {"storedVersions": ["v1alpha2"]}}"#;
    lab.patch_status("customresourcedefinitions", "", "sharedvolumes.crownlabs.polito.it", status);
    for file in crd_files() {
        let file = file.to_string_lossy().into_owned();
        let replaced = lab.try_kubectl(&["replace", "-f", &file], "");
        replaced.or_else(|_| lab.try_kubectl(&["create", "-f", &file], "")).expect("the CRD is accepted");
    }
    daemon.wait_for("the end of the faults", |daemon| {
        let (code, text) = daemon.ready();
        code == 200 && !text.contains("CRDs: ")
    });
    assert_eq!(logged(&daemon, "INFO", "the CRDs now match this version"), 1, "{}", daemon.log());
}
