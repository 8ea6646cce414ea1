//! Public ports of Instances: a new port must be possible, and a refusal has a machine-readable reason.

use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use super::act;
use super::quota::{instance, template};
use super::rules::expect;
use crate::lab::{Lab, PATIENCE, wait_until};

const NAMESPACE: &str = "tenant-ada";

/// An Instance of ada with these public ports, as entries of a YAML list.
fn exposed(name: &str, ports: &str, running: bool) -> String {
    let more = format!("running: {running}\n  publicExposure: {{ports: [{ports}]}}");
    instance(name, "workspace-closed/open", &more)
}

/// Returns the reasons of the refusal of a change of the Instance `box` by ada, each with its value.
fn causes(lab: &Lab, patch: &Value) -> Vec<(String, String)> {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let client = runtime.block_on(lab.cluster.client_as("ada")).expect("a client");
    let kind = GroupVersionKind::gvk("crownlabs.polito.it", "v1alpha2", "Instance");
    let instances: Api<DynamicObject> =
        Api::namespaced_with(client, NAMESPACE, &ApiResource::from_gvk(&kind));
    let params = PatchParams::default();
    match runtime.block_on(instances.patch("box", &params, &Patch::Merge(patch))) {
        Err(kube::Error::Api(status)) => {
            let causes = status.details.iter().flat_map(|details| &details.causes);
            causes.map(|cause| (cause.reason.clone(), cause.message.clone())).collect()
        }
        other => panic!("{other:?}"),
    }
}

/// A port with the name, the target or the public port of another one is refused in new entries only.
pub fn ports(lab: &Lab) {
    let open = template("workspace-closed", "open", "closed");
    lab.apply(&open.replace("  environmentList:", "  allowPublicExposure: true\n  environmentList:"));
    let create = |ports: &str| act(lab, "ada", &["create", "-f", "-"], &exposed("box", ports, false));
    let ssh = "{name: ssh, port: 22, targetPort: 22}";
    for (ports, word) in [
        ("{name: ssh, targetPort: 22}, {name: ssh, targetPort: 80}", "ports[1]: two ports are named ssh"),
        ("{name: ssh, targetPort: 22}, {name: web, targetPort: 22}", "two ports have targetPort 22"),
        (&*format!("{ssh}, {{name: web, port: 22, targetPort: 80}}"), "two ports request the public port 22"),
        ("{name: a, targetPort: 1, protocol: SCTP}", "only TCP and UDP can be exposed"),
    ] {
        expect(ports, create(ports), word);
    }
    taken(lab);
    // An administrator may restore an Instance with such ports, and its user may change other parts of it.
    lab.apply(&exposed("box", &format!("{ssh}, {{name: ssh, port: 443, targetPort: 80}}"), false));
    let port = |name: &str, port: u16, target: u16| json!({"name": name, "port": port, "targetPort": target, "protocol": "TCP"});
    let stored = [port("ssh", 22, 22), port("ssh", 443, 80)];
    let with = |more: &[Value]| {
        let ports = [&stored[..], more].concat();
        json!({"spec": {"publicExposure": {"ports": ports}}})
    };
    let edit = |patch: &Value| {
        let patch = patch.to_string();
        act(lab, "ada", &["patch", "instance", "-n", NAMESPACE, "box", "--type=merge", "-p", &patch], "")
    };
    expect("another field", edit(&json!({"spec": {"prettyName": "Box"}})), "");
    expect("another port", edit(&with(&[port("web", 0, 8080)])), "");
    expect("one less", edit(&with(&[])), "");
    for (added, reason, value) in [
        (port("ssh", 0, 90), "PortNameTaken", "ssh"),
        (port("web", 0, 80), "PortTargetTaken", "80"),
        (port("web", 22, 90), "PublicPortTaken", "22"),
    ] {
        assert_eq!(causes(lab, &with(&[added])), [(reason.to_owned(), value.to_owned())]);
    }
    expect("only one of them", edit(&json!({"spec": {"publicExposure": {"ports": [stored[0]]}}})), "");
    lab.delete("instance", NAMESPACE, &["box", "holder"]);
}

/// A public port that another Instance has on the only address is refused.
fn taken(lab: &Lab) {
    let https = "{name: https, port: 443, targetPort: 443}";
    let created = act(lab, "ada", &["create", "-f", "-"], &exposed("holder", https, true));
    expect("the first one", created, "");
    lab.await_value("instances", NAMESPACE, "holder", "/status/publicExposure/phase", "Ready");
    let attempt = ["create", "--dry-run=server", "-f", "-"];
    let taken = "the public port 443 is in use: request another port, or port 0 (any free port)";
    // The watch of the webhook may be late.
    wait_until(PATIENCE, || match act(lab, "ada", &attempt, &exposed("box", https, false)) {
        Err(refusal) if refusal.contains(taken) => Ok(()),
        other => Err(format!("the refusal of a taken port: {other:?}")),
    });
    let udp = https.replace("targetPort", "protocol: UDP, targetPort");
    expect("another protocol", act(lab, "ada", &attempt, &exposed("box", &udp, false)), "");
    let holder = json!({"spec": {"prettyName": "Holder"}}).to_string();
    let rename = ["patch", "instance", "-n", NAMESPACE, "holder", "--type=merge", "-p", &holder];
    expect("its holder", act(lab, "ada", &rename, ""), "");
}
