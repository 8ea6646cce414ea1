//! Nothing changed, nothing written.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cluster::audit::writes;
use crate::daemon::{Daemon, Options};
use crate::lab::{Lab, TEMPLATES, instance};

const NAMESPACE: &str = "tenant-quiet";
const KINDS: &str = "instances.crownlabs.polito.it,services,ingresses,secrets,persistentvolumeclaims,\
                     deployments,virtualmachines.kubevirt.io,virtualmachineinstances.kubevirt.io";

/// `Kind/name` → resource version.
fn versions(lab: &Lab) -> BTreeMap<String, Value> {
    let name = |object: &Value| format!("{}/{}", object["kind"], object["metadata"]["name"]);
    lab.list(KINDS, NAMESPACE)
        .iter()
        .map(|object| (name(object), object["metadata"]["resourceVersion"].clone()))
        .collect()
}

#[test]
fn nothing_changed_nothing_written() {
    let lab = Lab::shared();
    lab.furnish("quiet");
    let admin = lab.admin();
    let options = Options { kubeconfig: &admin, selector: "quiet", config: "" };
    let daemon = Daemon::start(&options);
    for template in TEMPLATES {
        lab.apply(&instance("quiet", template, template));
        lab.apply(
            &instance("quiet", &format!("{template}.off"), template)
                .replace("spec:\n", "spec:\n  running: false\n"),
        );
    }
    // One that is refused: its fault must not be told again and again.
    lab.apply(&instance("quiet", "refused", "absent"));
    lab.await_fault(NAMESPACE, "refused", "TemplateNotFound");
    for template in TEMPLATES {
        lab.await_phase(NAMESPACE, template, "Ready");
        lab.await_phase(NAMESPACE, &format!("{template}.off"), "Off");
    }
    // The last write of the daemon may be on its way: converged is when two looks are equal.
    let mut before = versions(&lab);
    crate::lab::wait_until(crate::lab::PATIENCE, || {
        std::thread::sleep(Duration::from_secs(2));
        let now = versions(&lab);
        let same = now == before;
        before = now;
        same.then_some(()).ok_or_else(|| "two equal looks".to_owned())
    });
    let audit = lab.cluster.audit();
    let mark = audit.mark().expect("the audit log");
    let watched = Instant::now();
    drop(daemon);
    let daemon = Daemon::start(&options);
    // Unrelated fields: of the Template, the Tenant, the namespace.
    lab.patch("templates", "workspace-quiet", "vm", r#"{"spec": {"description": "another"}}"#);
    lab.kubectl(&["patch", "tenant", "quiet", "--type=merge", "-p", r#"{"spec": {"firstName": "Adele"}}"#]);
    lab.kubectl(&["label", "namespace", NAMESPACE, "unrelated=yes"]);
    // The promise is two minutes of silence: time is what is tested here.
    std::thread::sleep(Duration::from_mins(2).saturating_sub(watched.elapsed()));
    assert_eq!(versions(&lab), before);
    let ours = |entry: &&crate::cluster::audit::AuditEntry| {
        entry.user_agent.starts_with("crownlabs/") && entry.namespace == NAMESPACE
    };
    let entries = audit.since(mark).expect("the audit log");
    let written: Vec<_> = writes(&entries).filter(ours).collect();
    assert!(written.is_empty(), "{written:#?}");
    // It is awake: a change is answered.
    lab.patch("instances", NAMESPACE, "standalone", r#"{"spec": {"running": false}}"#);
    lab.await_phase(NAMESPACE, "standalone", "Off");
    drop(daemon);
    lab.clear("quiet");
}
