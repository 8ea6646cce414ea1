//! The chart is installed on an empty control plane, upgraded and uninstalled, with the daemon of the image as the pod.

use std::collections::BTreeMap;
use std::process::Command;

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::dns::Dns;
use crate::lab::{Lab, PATIENCE, wait_until};
use crate::pod::{self, NAMESPACE, Pod, RELEASE, project};
use cluster::{Cluster, Options};

/// The daemon uses its default ports, and the name server the only possible port.
pub static PORTS: Mutex<()> = Mutex::new(());

/// Custom resources, and the objects that the daemon creates from them.
const KINDS: &str = "workspaces,tenants,templates,instances,sharedvolumes,namespaces,secrets,services,deployments,\
                     ingresses,persistentvolumeclaims,virtualmachines.kubevirt.io,rolebindings,resourcequotas";

/// Runs helm. Returns its output.
fn helm(lab: &Lab, arguments: &[&str]) -> String {
    let program = std::env::var("HELM").expect("HELM, the path of helm");
    let home = lab.cluster.dir().join("helm");
    let output = Command::new(program)
        .args(arguments)
        .args(["--namespace", NAMESPACE])
        .env("KUBECONFIG", lab.admin())
        .envs(["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"].map(|name| (name, &home)))
        .output()
        .expect("helm starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "helm {arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Installs or upgrades the release with these values, and waits until its pods are ready.
pub fn release(lab: &Lab, command: &str, values: &[&str]) {
    let chart = project().join("manifests/chart").display().to_string();
    // The API server is a process on this machine, not a pod.
    let values = ["networkPolicy.podNetworks={10.244.0.0/16}"].iter().chain(values);
    let values = values.flat_map(|value| ["--set", value]);
    let arguments = [command, RELEASE, &chart, "--wait", "--timeout", "3m"];
    helm(lab, &arguments.into_iter().chain(values).collect::<Vec<_>>());
}

/// A control plane with the namespace of the release, which admits only restricted pods.
pub fn fresh() -> Lab {
    let lab = Lab { cluster: Cluster::start(Options::default()).expect("a control plane") };
    lab.apply(&format!(
        "apiVersion: v1
kind: Namespace
metadata: {{name: {NAMESPACE}, labels: {{pod-security.kubernetes.io/enforce: restricted}}}}\n"
    ));
    lab
}

/// The kinds of webhook configurations; the chart installs one of each.
const WEBHOOKS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/// Changes how the API server reaches the webhooks: `change` modifies a `clientConfig`.
fn change_clients(lab: &Lab, change: impl Fn(&mut Value) -> Result<(), String>) {
    for kind in WEBHOOKS {
        let name = lab.list(kind, "").first().expect("the chart installs one")["metadata"]["name"].clone();
        let name = name.as_str().expect("a name");
        wait_until(PATIENCE, || {
            let object = lab.get(kind, "", name).ok_or("the configuration")?;
            let mut webhooks = object["webhooks"].as_array().cloned().unwrap_or_default();
            webhooks.iter_mut().try_for_each(|webhook| change(&mut webhook["clientConfig"]))?;
            // With the resource version that was read: the daemon may write the authority at the same time.
            let version = &object["metadata"]["resourceVersion"];
            let patch = json!({"metadata": {"resourceVersion": version}, "webhooks": webhooks});
            lab.cluster.patch(kind, "", name, None, &patch.to_string()).map_err(|error| format!("{error:#}"))
        });
    }
}

/// Makes the API server call the webhooks at the daemon's own address, because Services are not routed here, and waits
/// until it does.
fn call_directly(lab: &Lab) {
    change_clients(lab, |client| {
        if client["caBundle"].as_str().is_none_or(str::is_empty) {
            return Err("the authority in the configurations of the webhooks".to_owned());
        }
        if let Some(path) = client["service"]["path"].as_str() {
            let url = format!("https://127.0.0.1:9443{path}");
            *client = json!({"caBundle": client["caBundle"], "url": url});
        }
        Ok(())
    });
    // A user whose Tenant only the webhooks reject.
    lab.apply(
        "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: stranger},
rules: [{apiGroups: [crownlabs.polito.it], resources: [tenants], verbs: [create]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: stranger},
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: stranger},
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: stranger}]}",
    );
    wait_until(PATIENCE, || {
        let refused = lab.try_kubectl(
            &["create", "--as", "stranger", "--dry-run=server", "-f", "-"],
            "{apiVersion: crownlabs.polito.it/v1alpha2, kind: Tenant, metadata: {name: x}, \
             spec: {firstName: Xenia, lastName: Young, email: x@example.org}}",
        );
        match refused {
            Err(refusal) if refusal.contains("admission webhook") => Ok(()),
            other => Err(format!("a refusal of the webhook: {other:?}")),
        }
    });
}

/// Reverts it: helm changes the objects that the chart has installed.
fn call_by_service(lab: &Lab) {
    change_clients(lab, |client| {
        let url = client["url"].as_str().ok_or("a URL")?;
        let path = url.strip_prefix("https://127.0.0.1:9443").ok_or("the path")?;
        let service = json!({"name": "crownlabs-webhook", "namespace": NAMESPACE, "path": path});
        *client = json!({"caBundle": client["caBundle"], "service": service});
        Ok(())
    });
}

/// Waits until Kubernetes counts Instances for quotas, half a minute after their CRD was installed. A quota that was
/// created earlier would not count them for five minutes, and reject them.
pub fn await_counted(lab: &Lab) {
    let mut most = 0;
    wait_until(PATIENCE, || {
        // Each change of the quota triggers a new count.
        most += 1;
        lab.apply(&format!(
            "apiVersion: v1
kind: ResourceQuota
metadata: {{name: probe, namespace: default}}
spec: {{hard: {{count/instances.crownlabs.polito.it: {most}}}}}\n"
        ));
        let quota = lab.get("resourcequotas", "default", "probe").unwrap_or_default();
        let is_counted = quota["status"]["used"].as_object().is_some_and(|used| !used.is_empty());
        is_counted.then_some(()).ok_or_else(|| format!("the number of Instances in {quota}"))
    });
    lab.delete("resourcequotas", "default", &["probe"]);
}

/// Applies the samples with one command and waits until they are ready.
pub fn use_samples(lab: &Lab) {
    await_counted(lab);
    let samples = project().join("manifests/samples").display().to_string();
    lab.kubectl(&["apply", "-f", &samples]);
    for name in ["desktop-1", "server-1", "wireshark-1", "notebook-1", "pair-1"] {
        lab.await_phase("tenant-ada-rossi", name, "Ready");
    }
    lab.await_value("sharedvolumes", "workspace-netlab", "materials", "/status/phase", "Ready");
}

/// The uids of the objects, by kind, namespace and name.
fn uids(lab: &Lab) -> BTreeMap<String, Value> {
    let place = |object: &Value| {
        let metadata = &object["metadata"];
        format!("{} {} {}", object["kind"], metadata["namespace"], metadata["name"])
    };
    // Objects of the release are deleted with it.
    let is_ours = |object: &Value| {
        object["metadata"]["namespace"] != NAMESPACE
            && object["metadata"]["annotations"]["meta.helm.sh/release-name"] != RELEASE
    };
    let objects = lab.list(KINDS, "").into_iter().filter(is_ours);
    objects.map(|object| (place(&object), object["metadata"]["uid"].clone())).collect()
}

/// Whether the role of the daemon mentions a resource.
fn may_use(lab: &Lab, resource: &str) -> bool {
    let roles = lab.list("clusterroles", "");
    let role = roles.iter().find(|role| role["metadata"]["name"] == "crownlabs-controller-manager");
    let role = role.expect("the role of the daemon");
    let all = role["rules"].as_array().expect("rules");
    all.iter().any(|rule| rule["resources"].as_array().is_some_and(|names| names.contains(&resource.into())))
}

/// The API server's message, for every user, about owners whose CRDs are less than half a minute old.
const TOO_NEW: &str = "cannot find RESTMapping";

/// Asserts that the API server has rejected no request of the daemon because of a missing right. `logs` are the
/// daemon's logs.
pub fn assert_nothing_forbidden(lab: &Lab, logs: &[String]) {
    let entries = lab.cluster.audit().since(cluster::audit::Mark::default()).expect("the audit log");
    let account = format!("system:serviceaccount:{NAMESPACE}:{RELEASE}");
    let ours: Vec<_> = entries.iter().filter(|entry| entry.user == account).collect();
    assert!(ours.iter().any(|entry| entry.is_write()), "the daemon has written something");
    let forbidden: Vec<_> =
        ours.iter().filter(|entry| entry.code == 403 && !entry.message.contains(TOO_NEW)).collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}\n{}", logs.join("\n"));
}

/// Install, samples, upgrade, uninstall.
fn walk(values: &[&str], has_webhooks: bool) {
    let _ports = PORTS.lock();
    let dns = Dns::start(pod::SERVER);
    let lab = fresh();
    release(&lab, "install", values);
    assert_eq!(pod::pods(&lab, NAMESPACE).len(), 2, "two replicas are admitted");
    let first = Pod::start(&lab);
    if has_webhooks {
        call_directly(&lab);
    }
    use_samples(&lab);
    assert!(dns.answered() > 0, "the API server was found by its name");

    // Two loops less: their rights are removed, and the other loops keep working.
    assert!(may_use(&lab, "instancesnapshots") && may_use(&lab, "sharedvolumes/status"));
    let logs = first.log();
    first.stop();
    if has_webhooks {
        call_by_service(&lab);
    }
    let fewer =
        ["config.controllers.snapshot.enabled=false", "config.controllers.sharedVolume.enabled=false"];
    release(&lab, "upgrade", &[values, &fewer].concat());
    assert!(!may_use(&lab, "instancesnapshots") && !may_use(&lab, "sharedvolumes/status"));
    let second = Pod::start(&lab);
    if has_webhooks {
        call_directly(&lab);
    }
    lab.patch("instances", "tenant-ada-rossi", "server-1", r#"{"spec": {"running": false}}"#);
    lab.await_phase("tenant-ada-rossi", "server-1", "Off");
    let logs = [logs, second.log()];
    second.stop();
    assert_nothing_forbidden(&lab, &logs);

    let before = uids(&lab);
    assert!(before.len() > 40, "{before:#?}");
    helm(&lab, &["uninstall", RELEASE, "--wait"]);
    assert!(lab.get("deployments", NAMESPACE, RELEASE).is_none(), "the release is gone");
    let kept = lab.list("mutatingwebhookconfigurations,validatingwebhookconfigurations", "");
    assert_eq!(kept.len(), if has_webhooks { 2 } else { 0 }, "they guard Tenants without a daemon, too");
    // Everything that runs keeps running, and an administrator can still edit the objects of users.
    assert_eq!(uids(&lab), before);
    lab.patch("instances", "tenant-ada-rossi", "notebook-1", r#"{"spec": {"prettyName": "Notes"}}"#);
}

#[test]
fn the_chart_installs_upgrades_and_keeps_the_objects_of_users() {
    walk(&["config.server.webhook.enabled=false"], false);
}

#[test]
fn the_same_with_the_webhooks() {
    // The certificate has the address that the daemon listens on, which the API server calls here.
    walk(&["config.server.webhook.listen=127.0.0.1:9443"], true);
}

/// The type of processor cores in the quotas of Workspaces, in the CRD that `helm install` would apply to this cluster.
fn quota_cpu(lab: &Lab, values: &[&str]) -> Value {
    let chart = project().join("manifests/chart").display().to_string();
    let arguments = ["install", RELEASE, &chart, "--dry-run=server", "--take-ownership"];
    let values = ["networkPolicy.podNetworks={10.244.0.0/16}"].iter().chain(values);
    let values = values.flat_map(|value| ["--set", value]);
    let said = helm(lab, &arguments.into_iter().chain(values).collect::<Vec<_>>());
    let crd = said.split("\n---\n").find(|document| {
        document.contains("kind: CustomResourceDefinition")
            && document.contains("\n  name: workspaces.crownlabs.polito.it")
    });
    let crd: Value = serde_saphyr::from_str(crd.expect("the CRD")).expect("YAML");
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let cpu = &schema["properties"]["spec"]["properties"]["quota"]["properties"]["cpu"];
    if cpu["x-kubernetes-int-or-string"] == true { "intOrString".into() } else { cpu["type"].clone() }
}

/// A stored quota decides the type of its field: otherwise that object could not be written any more.
#[test]
fn the_cores_of_quotas_are_whole_numbers_unless_a_fraction_is_stored() {
    let lab = fresh();
    assert_eq!(quota_cpu(&lab, &[]), "integer");
    lab.kubectl(&["apply", "--server-side", "-f", &project().join("manifests/crds").display().to_string()]);
    let workspace = |name: &str, cpu: &str| {
        wait_until(PATIENCE, || {
            let object = format!(
                "{{apiVersion: crownlabs.polito.it/v1alpha1, kind: Workspace, metadata: {{name: {name}}}, \
                 spec: {{prettyName: X, quota: {{cpu: {cpu}, memory: 1Gi, instances: 1}}}}}}"
            );
            lab.try_kubectl(&["apply", "-f", "-"], &object).map(drop)
        });
    };
    workspace("whole", "2");
    assert_eq!(quota_cpu(&lab, &[]), "integer");
    workspace("fraction", "500m");
    assert_eq!(quota_cpu(&lab, &[]), "intOrString");
    assert_eq!(quota_cpu(&lab, &["crds.quotaCpu=integer"]), "integer");
    lab.delete("workspaces", "", &["fraction"]);
    lab.apply(
        "{apiVersion: crownlabs.polito.it/v1alpha2, kind: Tenant, metadata: {name: x}, spec: {firstName: Xenia, lastName: Young,
email: x@example.org, personalWorkspace: {cpu: 1500m, memory: 1Gi, instances: 1}}}",
    );
    assert_eq!(quota_cpu(&lab, &[]), "intOrString");
    assert_eq!(quota_cpu(&lab, &["crds.quotaCpu=intOrString"]), "intOrString");
}
