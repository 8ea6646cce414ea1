//! Each setting can be switched on and off while Instances run: their objects are not recreated, and no right is missing
//! in between.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{environment, instance_of};
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::tenants::{tenant, workspace};

const NAMESPACE: &str = "tenant-isolate-a";
const SANDBOX: &str = "sandbox-isolate-a";
const COURSE: &str = "isolate-w1";
const DENY: &str = "crownlabs-deny-ingress-traffic";

/// A setting.
struct Setting {
    /// The configuration that switches it on.
    config: &'static str,
    /// Whether the objects are those of the setting, if it is on or off.
    has_converged: fn(&Lab, bool) -> bool,
}

const SETTINGS: [Setting; 6] = [
    Setting {
        config: "controllers: {instance: {examEgress: {enabled: true}}}\n",
        has_converged: |lab, is_on| {
            let deny = lab.get("networkpolicies", NAMESPACE, DENY).expect("it stays");
            let excludes = deny["spec"]["podSelector"] != json!({});
            exists(lab, "networkpolicies", NAMESPACE, "exam") == is_on && excludes == is_on
        },
    },
    Setting {
        config: "controllers: {tenant: {sandboxNetworkPolicies: true}}\n",
        has_converged: |lab, is_on| exists(lab, "networkpolicies", SANDBOX, DENY) == is_on,
    },
    Setting {
        config: "controllers: {tenant: {egress: {enabled: true, deny: [10.0.0.0/8]}}}\n",
        has_converged: |lab, is_on| exists(lab, "networkpolicies", NAMESPACE, "crownlabs-egress") == is_on,
    },
    Setting {
        config: "controllers: {tenant: {managers: course}}\n",
        has_converged: |lab, is_on| has_personal_binding(lab) == is_on && has_cluster_binding(lab) != is_on,
    },
    Setting {
        config: "controllers: {instance: {urls: host}}\n",
        has_converged: |lab, is_on| {
            let ingress = lab.get("ingresses", NAMESPACE, "lab-gui").expect("it stays");
            let host = ingress["spec"]["rules"][0]["host"].as_str().expect("a host");
            let label = host.strip_suffix(".crownlabs.example.com");
            label.is_some_and(|label| label.len() == 26) == is_on
        },
    },
    Setting {
        config: "controllers: {instance: {urls: host, access: {mode: daemon, exams: daemon, daemon: \
                 {authUrl: \"http://login.example.com/auth\", signInUrl: \"https://labs.example.com/login/machine\"}}}}\n",
        has_converged: |lab, is_on| {
            let logins = ["lab-gui", "exam-gui"].map(|name| {
                let ingress = lab.get("ingresses", NAMESPACE, name).expect("it stays");
                let label =
                    ingress["spec"]["rules"][0]["host"].as_str().and_then(|host| host.split('.').next());
                let wanted = format!("http://login.example.com/auth/{}", label.expect("a label"));
                ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/auth-url"] == *wanted
            });
            logins == [is_on; 2]
        },
    },
];

fn exists(lab: &Lab, kind: &str, namespace: &str, name: &str) -> bool {
    lab.get(kind, namespace, name).is_some()
}

fn has_cluster_binding(lab: &Lab) -> bool {
    exists(lab, "clusterrolebindings", "", &format!("crownlabs-manage-instances-{COURSE}"))
}

fn has_personal_binding(lab: &Lab) -> bool {
    exists(lab, "rolebindings", NAMESPACE, "crownlabs-manage-instances-managers")
}

/// Panics if the managers of the course have neither of the two bindings. The new one is created before the former one
/// is deleted, so a binding that replaced the other between two reads is found by the third.
fn assert_no_manager_is_locked_out(lab: &Lab) {
    assert!(
        has_cluster_binding(lab) || has_personal_binding(lab) || has_cluster_binding(lab),
        "the managers of {COURSE} have no right on the Instances in {NAMESPACE}"
    );
}

/// The objects of the running Instances: their uids and, for workloads, the generations of their specs.
fn objects(lab: &Lab) -> BTreeMap<String, (Value, Value)> {
    let kinds = "deployments,virtualmachines,virtualmachineinstances,pods,services,ingresses";
    let identity = |object: Value| {
        let (kind, metadata) = (object["kind"].as_str().expect("a kind"), &object["metadata"]);
        let is_workload = kind == "Deployment" || kind.starts_with("VirtualMachine");
        let generation = if is_workload { metadata["generation"].clone() } else { Value::Null };
        (format!("{kind} {}", metadata["name"]), (metadata["uid"].clone(), generation))
    };
    lab.list(kinds, NAMESPACE).into_iter().map(identity).collect()
}

#[test]
fn a_setting_is_switched_on_and_off_without_a_new_machine_and_without_a_missing_right() {
    let lab = Lab::shared();
    let course = lab.course("isolate");
    for (name, kind, mode, is_persistent) in [
        ("lab", "Container", "Standard", false),
        ("exam", "Container", "Exam", false),
        ("exam-vm", "CloudVM", "Exam", true),
    ] {
        let environments = json!([environment(kind, mode, is_persistent)]);
        lab.create_template("isolate", name, "container", &environments);
    }
    let options = |config| Options { kubeconfig: course.kubeconfig(), selector: "isolate", config };
    let mut daemon = Daemon::start(&options(""));
    for name in [COURSE, "isolate-w2"] {
        lab.apply(&workspace("isolate", name, ""));
        lab.await_ready("workspaces", name);
    }
    let roles = "[{name: isolate-w1, role: user}, {name: isolate-w2, role: user}]";
    let more = format!(
        ", createSandbox: true, quota: {{cpu: 16, memory: 64Gi, instances: 20}}, workspaces: {roles}"
    );
    lab.apply(&tenant("isolate", "isolate-a", &more));
    let quota = "/status/hard/count~1instances.crownlabs.polito.it";
    lab.await_value("resourcequotas", NAMESPACE, "crownlabs-resource-quota", quota, "20");
    for name in ["lab", "exam", "exam-vm"] {
        lab.apply(&instance_of("isolate", "isolate-a", name, name));
        lab.await_phase(NAMESPACE, name, "Ready");
    }
    let before = objects(&lab);
    for setting in &SETTINGS {
        for (config, is_on) in [(setting.config, true), ("", false)] {
            drop(daemon);
            daemon = Daemon::spawn(&options(config));
            wait_until(PATIENCE, || {
                assert_no_manager_is_locked_out(&lab);
                let has_converged = (setting.has_converged)(&lab, is_on);
                has_converged.then_some(()).ok_or_else(|| format!("{is_on}: {}", setting.config))
            });
            assert_eq!(objects(&lab), before, "{is_on}: {}", setting.config);
        }
    }
    for name in ["lab", "exam", "exam-vm"] {
        lab.await_phase(NAMESPACE, name, "Ready");
    }
    lab.delete("tenant", "", &["isolate-a"]);
    lab.delete("workspace", "", &[COURSE, "isolate-w2"]);
}
