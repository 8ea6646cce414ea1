//! Clients that wait for an object with the rules of kstatus, such as Flux and Argo CD, wait neither too long
//! nor in vain.

use serde_json::json;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, PATIENCE, instance, wait_until};
use crate::pod_config::{pod, pod_config};
use crate::shared_volumes::shared_volume;
use crate::snapshots::snapshot;
use crate::tenants::{tenant, workspace};
use cluster::kstatus;

const NAMESPACE: &str = "tenant-kstatus";

/// Waits until the daemon has observed the current object and kstatus reports this status of it. Returns all
/// statuses in between.
fn await_kstatus(lab: &Lab, kind: &str, namespace: &str, name: &str, wanted: &str) -> Vec<&'static str> {
    let mut said = Vec::new();
    wait_until(PATIENCE, || {
        let object = lab.get(kind, namespace, name).ok_or_else(|| format!("{kind} {name}"))?;
        let is_seen = object["status"]["observedGeneration"] == object["metadata"]["generation"];
        let now = kstatus::of(&object);
        if is_seen {
            said.push(now);
        }
        let reached = is_seen && now == wanted;
        reached
            .then_some(())
            .ok_or_else(|| format!("{kind} {name}: {wanted}, is {now}: {}", object["status"]))
    });
    said
}

/// A `PodConfig` is current while it has no pods, in progress while the link of a pod is missing, and fails if its
/// range is invalid.
fn pod_configs(lab: &Lab) {
    let config = |range: &str| pod_config(NAMESPACE, "net", &[&format!("x br0 {range}")], &json!({}));
    lab.apply(&config("10.1.0.0/24"));
    let said = await_kstatus(lab, "podconfigs", NAMESPACE, "net", "Current");
    assert!(!said.contains(&"Failed"), "{said:?}");
    lab.apply(&pod(NAMESPACE, "waits", "net", "nowhere"));
    await_kstatus(lab, "podconfigs", NAMESPACE, "net", "InProgress");
    lab.apply(&config("10.1.0.0/33"));
    await_kstatus(lab, "podconfigs", NAMESPACE, "net", "Failed");
    // The failure ends when its cause is gone.
    lab.apply(&config("10.2.0.0/24"));
    let said = await_kstatus(lab, "podconfigs", NAMESPACE, "net", "InProgress");
    assert!(!said.contains(&"Current"), "{said:?}");
    lab.delete("pod", NAMESPACE, &["waits"]);
    await_kstatus(lab, "podconfigs", NAMESPACE, "net", "Current");
    lab.delete("podconfigs", NAMESPACE, &["net"]);
}

/// A Tenant of a course that does not exist is not ready, and fails after a while. It becomes ready when the course
/// exists.
fn await_late_courses(lab: &Lab) {
    lab.apply(&tenant("kstatus", "kstatus.late", ", workspaces: [{name: kstatus-late, role: user}]"));
    let said = await_kstatus(lab, "tenants", "", "kstatus.late", "Failed");
    assert!(said.contains(&"InProgress") && !said.contains(&"Current"), "{said:?}");
    let message = lab.await_condition("tenants", "kstatus.late", "Ready", "WorkspaceNotFound");
    assert!(message.contains("Workspace kstatus-late does not exist"), "{message}");
    // Everything else of the Tenant continues.
    lab.await_value("namespaces", "", "tenant-kstatus-late", "/status/phase", "Active");
    lab.apply(&workspace("kstatus", "kstatus-late", ""));
    await_kstatus(lab, "tenants", "", "kstatus.late", "Current");
    lab.delete("tenants", "", &["kstatus.late"]);
    lab.delete("workspaces", "", &["kstatus-late"]);
}

/// A Template of a course that does not exist fails after a while. When its spec names another course, it is no
/// longer judged by the former spec.
fn templates(lab: &Lab) {
    let (namespace, name) = ("workspace-kstatus", "container-persistent");
    await_kstatus(lab, "templates", namespace, name, "Failed");
    let course = json!({"spec": {"workspace.crownlabs.polito.it/WorkspaceRef": {"name": "kstatus-course"}}});
    lab.patch("templates", namespace, name, &course.to_string());
    let said = await_kstatus(lab, "templates", namespace, name, "Current");
    assert!(!said.contains(&"Failed"), "{said:?}");
}

#[test]
fn kstatus_reports_when_an_object_is_current_or_has_failed() {
    let lab = Lab::shared();
    let _course = lab.course("kstatus");
    let admin = lab.admin();
    let config = "controllers: {snapshot: {vmRegistry: r.example.org, vmRegistrySecret: login}, podConfig: {enabled: true}, instance: {stalledAfter: 5s}}\n";
    let _daemon = Daemon::start(&Options { kubeconfig: &admin, selector: "kstatus", config });
    lab.apply(&workspace("kstatus", "kstatus-course", ""));
    lab.apply(&tenant("kstatus", "kstatus.t", ""));
    lab.apply(&shared_volume("kstatus", "data", "1Gi"));
    lab.apply(&instance("kstatus", "box", "container"));
    lab.apply(&instance("kstatus", "one.name", "standalone"));
    let ready = [
        ("workspaces", "", "kstatus-course"),
        ("tenants", "", "kstatus.t"),
        ("sharedvolumes", "workspace-kstatus", "data"),
        ("instances", NAMESPACE, "box"),
        ("instances", NAMESPACE, "one.name"),
    ];
    for (kind, namespace, name) in ready {
        let said = await_kstatus(&lab, kind, namespace, name, "Current");
        assert!(!said.contains(&"Failed"), "{name}: {said:?}");
    }

    pod_configs(&lab);
    templates(&lab);

    // Stopped, as its spec requires, is as good as running.
    lab.patch("instances", NAMESPACE, "box", r#"{"spec": {"running": false}}"#);
    let said = await_kstatus(&lab, "instances", NAMESPACE, "box", "Current");
    assert!(!said.contains(&"Failed"), "{said:?}");
    lab.await_phase(NAMESPACE, "box", "Off");

    // A missing object may still be applied, so it is in progress first; an error of the object itself fails at once.
    lab.apply(&instance("kstatus", "early", "absent"));
    let said = await_kstatus(&lab, "instances", NAMESPACE, "early", "Failed");
    assert!(said.contains(&"InProgress") && !said.contains(&"Current"), "{said:?}");
    lab.await_fault(NAMESPACE, "early", "TemplateNotFound");
    await_late_courses(&lab);
    lab.apply(&instance("kstatus", "one-name", "standalone"));
    await_kstatus(&lab, "instances", NAMESPACE, "one-name", "Failed");
    lab.apply(&snapshot("kstatus", "refused", "box", "image"));
    await_kstatus(&lab, "instancesnapshots", NAMESPACE, "refused", "Failed");
    // The failure ends when its cause is gone.
    lab.delete("instances", NAMESPACE, &["one.name"]);
    await_kstatus(&lab, "instances", NAMESPACE, "one-name", "Current");

    lab.delete("tenants", "", &["kstatus.t"]);
    lab.delete("workspaces", "", &["kstatus-course"]);
}
