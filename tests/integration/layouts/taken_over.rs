//! Instances that either generation of the Go operators has created open after the takeover where the dashboard of that
//! generation opens them, beside the Instances of the daemon.

use serde_json::{Value, json};

use super::open::{Dashboard, open_all, shown};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, TEMPLATES, instance, wait_until};
use crate::takeover::{check, newest};
use cluster::Options as ClusterOptions;

/// The namespace of the recording, and the namespace of the newest operator and the daemon.
const NAMESPACES: [&str; 2] = ["tenant-ada-rossi", "tenant-local"];
/// As when the recording was made.
const HOST: &str = "labs.example.org";

/// Waits until every Instance is reconciled. Returns them.
fn await_reconciled(lab: &Lab) -> Vec<Value> {
    wait_until(PATIENCE, || {
        let list = |namespace: &&str| lab.list("instances.crownlabs.polito.it", namespace);
        let instances: Vec<Value> = NAMESPACES.iter().flat_map(list).collect();
        let is_reconciled = |object: &&Value| {
            let conditions = object["status"]["conditions"].as_array();
            let is_true =
                |condition: &Value| condition["type"] == "Reconciled" && condition["status"] == "True";
            conditions.is_some_and(|conditions| conditions.iter().any(is_true))
        };
        match instances.iter().find(|object| !is_reconciled(object)) {
            Some(left) => Err(format!("{} is not reconciled: {}", left["metadata"]["name"], left["status"])),
            None => Ok(instances),
        }
    })
}

/// The dashboard for an Instance: the one of the generation that created it.
fn dashboard(instance: &Value) -> Dashboard {
    let name = instance["metadata"]["name"].as_str().expect("a name");
    let is_classic = name.starts_with("i-") || name.starts_with("ours-classic-");
    if is_classic { Dashboard::Classic } else { Dashboard::PerEnvironment }
}

#[test]
fn instances_of_both_go_generations_open_where_their_dashboards_open_them() {
    let lab = Lab::start(ClusterOptions::default());
    // One of the recorded Deployments requires such a node.
    lab.kubectl(&["label", "nodes", "--all", "nodeSize=big"]);
    check::record(&lab);
    lab.create_fixtures("local");
    lab.apply(&newest::pair("local"));
    for template in TEMPLATES.into_iter().chain(["pair"]) {
        newest::make(&lab, "local", &format!("newest-{template}"), template, HOST);
    }
    // No Instance changes its layout, whatever layout new Instances get.
    for (layout, age) in [("classic", "ours-classic"), ("perEnvironment", "ours-new")] {
        let config = format!(
            "controllers: {{tenant: {{enabled: false}}, workspace: {{enabled: false}}, instance: {{layout: {layout}, \
             websiteBaseUrl: {HOST}, instancesAuthUrl: \"https://{HOST}/auth\"}}}}\n"
        );
        let admin = lab.admin();
        let mut daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "local", config: &config });
        for template in TEMPLATES {
            lab.apply(&instance("local", &format!("{age}-{template}"), template));
            lab.await_phase("tenant-local", &format!("{age}-{template}"), "Ready");
        }
        let instances = await_reconciled(&lab);
        let all: Vec<_> = instances.iter().flat_map(|each| shown(&lab, each, dashboard(each))).collect();
        open_all(&lab, &NAMESPACES, &all);
        daemon.stop();
        // The next daemon must report the reconcile itself.
        for each in instances {
            let [namespace, name] =
                ["namespace", "name"].map(|key| each["metadata"][key].as_str().expect("a text"));
            let none = json!({"status": {"conditions": null}}).to_string();
            lab.patch_status("instances.crownlabs.polito.it", namespace, name, &none);
        }
    }
}
