//! If nothing has changed, nothing is written.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, TEMPLATES, instance};
use cluster::audit::writes;

const NAMESPACE: &str = "tenant-quiet";
const KINDS: &str = "instances.crownlabs.polito.it,services,ingresses,secrets,persistentvolumeclaims,\
                     deployments,virtualmachines.kubevirt.io,virtualmachineinstances.kubevirt.io";

/// The resource versions of the objects, by `Kind/name`.
fn versions(lab: &Lab) -> BTreeMap<String, Value> {
    let name = |object: &Value| format!("{}/{}", object["kind"], object["metadata"]["name"]);
    lab.list(KINDS, NAMESPACE)
        .iter()
        .map(|object| (name(object), object["metadata"]["resourceVersion"].clone()))
        .collect()
}

#[test]
fn nothing_is_written_when_nothing_has_changed() {
    let lab = Lab::shared();
    let _course = lab.course("quiet");
    let admin = lab.admin();
    // The problem is `Stalled` at once, so no later write is due.
    let config = "controllers: {instance: {stalledAfter: 0s}}\n";
    let options = Options { kubeconfig: &admin, selector: "quiet", config };
    let daemon = Daemon::start(&options);
    for template in TEMPLATES {
        lab.apply(&instance("quiet", template, template));
        lab.apply(
            &instance("quiet", &format!("{template}.off"), template)
                .replace("spec:\n", "spec:\n  running: false\n"),
        );
    }
    // An Instance whose Template does not exist: the error must not be written repeatedly.
    lab.apply(&instance("quiet", "refused", "absent"));
    lab.await_fault(NAMESPACE, "refused", "TemplateNotFound");
    for template in TEMPLATES {
        lab.await_phase(NAMESPACE, template, "Ready");
        lab.await_phase(NAMESPACE, &format!("{template}.off"), "Off");
    }
    // The last write may be in progress: wait until the versions are equal twice, two seconds apart.
    let mut before = versions(&lab);
    crate::lab::wait_until(crate::lab::PATIENCE, || {
        std::thread::sleep(Duration::from_secs(2));
        let now = versions(&lab);
        let same = now == before;
        before = now;
        same.then_some(()).ok_or_else(|| "resource versions that do not change".to_owned())
    });
    let audit = lab.cluster.audit();
    let mark = audit.mark().expect("the audit log");
    let begin = Instant::now();
    drop(daemon);
    let _daemon = Daemon::start(&options);
    // Fields of the Template, the Tenant and the namespace that the daemon does not use.
    lab.patch("templates", "workspace-quiet", "vm", r#"{"spec": {"description": "another"}}"#);
    lab.kubectl(&["patch", "tenant", "quiet", "--type=merge", "-p", r#"{"spec": {"firstName": "Adele"}}"#]);
    lab.kubectl(&["label", "namespace", NAMESPACE, "unrelated=yes"]);
    // For two minutes nothing may be written, so there is no condition to wait for.
    std::thread::sleep(Duration::from_mins(2).saturating_sub(begin.elapsed()));
    assert_eq!(versions(&lab), before);
    let ours = |entry: &&cluster::audit::AuditEntry| {
        entry.user_agent.starts_with("crownlabs/") && entry.namespace == NAMESPACE
    };
    let entries = audit.since(mark).expect("the audit log");
    let written: Vec<_> = writes(&entries).filter(ours).collect();
    assert!(written.is_empty(), "{written:#?}");
    // The daemon does react to a change.
    lab.patch("instances", NAMESPACE, "standalone", r#"{"spec": {"running": false}}"#);
    lab.await_phase(NAMESPACE, "standalone", "Off");
}
