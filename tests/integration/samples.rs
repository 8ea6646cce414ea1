//! The samples of the project.

use serde_json::Value;

use crate::cluster::Options as ClusterOptions;
use crate::daemon::{Daemon, Options, free_port};
use crate::lab::Lab;
use crate::webhook;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/samples");

#[test]
fn all_samples_are_applied_by_one_command_to_an_empty_cluster() {
    let lab = Lab::start(ClusterOptions::default());
    let kubeconfig = lab.service_account();
    let port = free_port();
    let config = format!("webhook: {{enabled: true, listen: \"127.0.0.1:{port}\"}}\n");
    let selector = "production";
    let _daemon = Daemon::start(&Options { kubeconfig: &kubeconfig, selector, config: &config });
    webhook::grant_everybody(&lab);
    webhook::install(&lab, selector, port);
    lab.kubectl(&["apply", "-f", SAMPLES]);
    for name in ["desktop-1", "server-1", "wireshark-1", "notebook-1", "pair-1"] {
        lab.await_phase("tenant-ada-rossi", name, "Ready");
    }
    lab.await_value("sharedvolumes", "workspace-netlab", "materials", "/status/phase", "Ready");
    lab.await_ready("workspaces", "netlab");
    lab.await_ready("tenants", "ada.rossi");
    lab.await_ready("tenants", "carlo.verdi");
    // The namespaces of the samples are those of the Workspace and the Tenant.
    for (namespace, owner) in [("workspace-netlab", "netlab"), ("tenant-ada-rossi", "ada.rossi")] {
        let namespace = lab.get("namespaces", "", namespace).expect("there");
        assert_eq!(namespace["metadata"]["ownerReferences"][0]["name"], Value::from(owner));
    }
    let again = lab.kubectl(&["apply", "-f", SAMPLES]);
    // To the environments of a Template, the API server has added defaults, which kubectl cannot tell from a change.
    let mut others = again.lines().filter(|line| !line.starts_with("template.crownlabs.polito.it/"));
    assert!(others.all(|line| line.ends_with(" unchanged")), "{again}");
}
