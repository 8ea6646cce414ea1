//! The RBAC rules of the daemon: they are sufficient, and each of them is needed.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::cluster::Options as ClusterOptions;
use crate::cluster::audit::Mark;
use crate::cluster::proxy::{Fault, Proxy, matching};
use crate::daemon::{Daemon, Options, free_port};
use crate::expiration::expire;
use crate::lab::{Lab, PATIENCE, TEMPLATES, instance, wait_until};
use crate::shared_volumes::shared_volume;
use crate::snapshots::snapshot;
use crate::submission::{hold_jobs, request};
use crate::tenants::{tenant, workspace};
use crate::termination::await_condition;
use crate::webhook;

/// Rights that the API server checks as part of another request, so that the audit log does not show them.
const CHECKED: [&str; 8] = [
    // When an object names an owner with `blockOwnerDeletion`.
    "update instances/finalizers",
    "update instancesnapshots/finalizers",
    "update sharedvolumes/finalizers",
    "update tenants/finalizers",
    "update workspaces/finalizers",
    // When a role binding names a role, and when a role has rules about Tenants.
    "bind clusterroles",
    "get tenants",
    "update tenants",
];

const NAMESPACE: &str = "tenant-rbac";
const USER: &str = "system:serviceaccount:crownlabs-system:crownlabs";

/// Every right that the manifests grant, as `verb resource`.
fn granted(lab: &Lab) -> BTreeSet<String> {
    let mut rights = BTreeSet::new();
    let roles = [
        lab.get("clusterroles", "default", "crownlabs-controller-manager"),
        lab.get("roles", "crownlabs-system", "crownlabs-leader-election"),
    ];
    for role in roles.into_iter().flatten() {
        for rule in role["rules"].as_array().into_iter().flatten() {
            let list = |key: &str| rule[key].as_array().cloned().unwrap_or_default();
            for resource in list("resources") {
                for verb in list("verbs") {
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    rights.insert(format!("{} {}", text(&verb), text(&resource)));
                }
            }
        }
    }
    rights
}

/// Makes the loops of Instances and public exposure do everything that they do, once.
fn exercise(lab: &Lab) {
    for template in TEMPLATES {
        lab.apply(&instance("rbac", template, template));
    }
    for template in TEMPLATES {
        lab.await_phase(NAMESPACE, template, "Ready");
    }
    lab.await_value("httproutes", NAMESPACE, "standalone", "/kind", "HTTPRoute");
    let allowed = r#"{"spec": {"allowPublicExposure": true}}"#;
    lab.patch("templates", "workspace-rbac", "container", allowed);
    let ports = r#"{"spec": {"publicExposure": {"ports": [{"name": "http", "targetPort": 80}]}}}"#;
    lab.patch("instances", NAMESPACE, "container", ports);
    lab.await_value("instances", NAMESPACE, "container", "/status/publicExposure/phase", "Ready");
    lab.patch("instances", NAMESPACE, "container", r#"{"spec": {"publicExposure": null}}"#);
    let policy = "crownlabs-allow-publicexposure-ingress-traffic-container";
    lab.await_gone("networkpolicies", NAMESPACE, policy);
    // Objects without labels are not in the stores; the daemon finds them by name.
    for (kind, name) in [
        ("services", "vm-persistent"),
        ("ingresses", "vm-persistent-gui"),
        ("secrets", "vm-persistent"),
        ("virtualmachines.kubevirt.io", "vm-persistent"),
        ("virtualmachineinstances.kubevirt.io", "vm"),
        ("deployments", "container-persistent"),
        ("persistentvolumeclaims", "container-persistent"),
        ("httproutes", "standalone"),
    ] {
        lab.patch(kind, NAMESPACE, name, r#"{"metadata": {"labels": null}}"#);
        lab.await_value(
            kind,
            NAMESPACE,
            name,
            "/metadata/labels/crownlabs.polito.it~1managed-by",
            "instance",
        );
    }
    lab.apply(&instance("rbac", "refused", "absent"));
    lab.await_fault(NAMESPACE, "refused", "TemplateNotFound");
    // The same fault again is counted by a patch of the same event.
    let of = |template: &str| {
        format!(r#"{{"spec": {{"template.crownlabs.polito.it/TemplateRef": {{"name": "{template}"}}}}}}"#)
    };
    lab.patch("instances", NAMESPACE, "refused", &of("container"));
    lab.await_phase(NAMESPACE, "refused", "Ready");
    lab.patch("instances", NAMESPACE, "refused", &of("absent"));
    lab.await_fault(NAMESPACE, "refused", "TemplateNotFound");
    for template in TEMPLATES {
        lab.patch("instances", NAMESPACE, template, r#"{"spec": {"running": false}}"#);
    }
    for template in TEMPLATES {
        lab.await_phase(NAMESPACE, template, "Off");
        lab.await_gone("services", NAMESPACE, template);
    }
}

/// The same for the loops of snapshots and shared volumes. The virtual machines are off.
fn exercise_storage(lab: &Lab) {
    lab.apply(&snapshot("rbac", "image", "vm-persistent", "image"));
    lab.await_value("instancesnapshots", NAMESPACE, "image", "/status/phase", "Completed");
    lab.apply(&snapshot("rbac", "refused", "vm", "image"));
    lab.await_value("instancesnapshots", NAMESPACE, "refused", "/status/phase", "Failed");
    lab.apply(&shared_volume("rbac", "data", "1Gi"));
    lab.await_value("sharedvolumes", "workspace-rbac", "data", "/status/phase", "Ready");
    lab.kubectl(&["delete", "sharedvolume", "-n", "workspace-rbac", "data"]);
}

/// The same for the loop of uploads. The Instances are off.
fn exercise_uploads(lab: &Lab) {
    let (name, job) = ("container-persistent", "container-persistent-submitter");
    let url = r#"{"spec": {"contentUrls": {"main": {"destination": "https://x.example"}}}}"#;
    lab.patch("instances", NAMESPACE, name, url);
    hold_jobs(lab, NAMESPACE);
    request(lab, NAMESPACE, name);
    await_condition(lab, NAMESPACE, name, "Submitted", "Uploading");
    lab.kubectl(&["label", "job", "-n", NAMESPACE, job, "crownlabs.polito.it/component-"]);
    let component = "/metadata/labels/crownlabs.polito.it~1component";
    let held = lab.await_value("jobs", NAMESPACE, job, component, "submitter");
    lab.kubectl(&["delete", "resourcequota", "-n", NAMESPACE, "small"]);
    await_condition(lab, NAMESPACE, name, "Submitted", "SubmissionCompleted");
    // The Job of the former request is deleted.
    request(lab, NAMESPACE, name);
    wait_until(PATIENCE, || {
        let other =
            lab.get("jobs", NAMESPACE, job).filter(|job| job["metadata"]["uid"] != held["metadata"]["uid"]);
        other.map(|_| ()).ok_or_else(|| "another Job".to_owned())
    });
    await_condition(lab, NAMESPACE, name, "Submitted", "SubmissionCompleted");
}

/// Causes refusals for which the webhooks send requests, because a store has no such object.
fn exercise_webhooks(lab: &Lab, port: u16) {
    // Only two users get rights: rights for everybody would be the daemon's, too.
    lab.kubectl(&[
        "create",
        "clusterrolebinding",
        "editor",
        "--clusterrole=crownlabs-manage-tenants",
        "--user=rbac",
        "--user=stranger",
    ]);
    webhook::install(lab, "rbac", port);
    let enrol = ["--as=rbac", "patch", "tenant", "rbac", "--type=merge", "-p"];
    let nowhere = r#"{"spec": {"workspaces": [{"name": "nowhere", "role": "user"}]}}"#;
    let refusal = lab.try_kubectl(&[&enrol[..], &[nowhere]].concat(), "").expect_err("refused");
    assert!(refusal.contains("\"nowhere\" not found"), "{refusal}");
    let refusal =
        lab.try_kubectl(&["create", "-f", "-"], &instance("rbac", "unmade", "absent")).expect_err("refused");
    assert!(refusal.contains("the Template workspace-rbac/absent does not exist"), "{refusal}");
    let kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
    lab.kubectl(&["delete", kinds, "crownlabs-webhook"]);
    lab.kubectl(&["delete", "clusterrolebinding", "editor"]);
}

/// The same for the loops of Tenants and Workspaces.
fn exercise_tenants(lab: &Lab) {
    lab.apply(&workspace("rbac", "rbac-course", "immediate"));
    let spec = ", createSandbox: true, personalWorkspace: {cpu: 1, memory: 1Gi, instances: 1}, \
                workspaces: [{name: rbac-course, role: candidate}]";
    lab.apply(&tenant("rbac", "rbac.t", spec));
    let provisioning = "/metadata/labels/crownlabs.polito.it~1volume-provisioning";
    lab.await_value("persistentvolumeclaims", "mydrive-pvcs", "rbac-t-drive", provisioning, "completed");
    lab.await_value(
        "rolebindings",
        "tenant-rbac-t",
        "crownlabs-manage-templates",
        "/subjects/0/name",
        "rbac.t",
    );
    lab.await_ready("tenants", "rbac.t");
    for (kind, namespace, name) in [
        ("clusterroles", "default", "crownlabs-manage-tenant-rbac-t"),
        ("clusterrolebindings", "default", "crownlabs-manage-tenant-rbac-t"),
        ("resourcequotas", "tenant-rbac-t", "crownlabs-resource-quota"),
        ("limitranges", "sandbox-rbac-t", "sandbox-limit-range"),
        ("networkpolicies", "tenant-rbac-t", "crownlabs-deny-ingress-traffic"),
        ("rolebindings", "tenant-rbac-t", "crownlabs-manage-instances"),
    ] {
        lab.patch(kind, namespace, name, r#"{"metadata": {"labels": null}}"#);
        lab.await_value(kind, namespace, name, "/metadata/labels/crownlabs.polito.it~1managed-by", "tenant");
    }
    lab.kubectl(&["label", "namespace", "tenant-rbac-t", "crownlabs.polito.it/type-"]);
    lab.await_value(
        "namespaces",
        "default",
        "tenant-rbac-t",
        "/metadata/labels/crownlabs.polito.it~1type",
        "tenant",
    );
    lab.patch("tenants", "default", "rbac.t", r#"{"spec": {"personalWorkspace": null}}"#);
    lab.await_gone("rolebindings", "tenant-rbac-t", "crownlabs-manage-templates");
    lab.kubectl(&["delete", "workspace", "rbac-course"]);
    lab.kubectl(&["delete", "tenant", "rbac.t"]);
    lab.await_gone("persistentvolumeclaims", "mydrive-pvcs", "rbac-t-drive");
}

#[test]
fn the_rbac_rules_are_sufficient_and_all_of_them_are_used() {
    let lab = Lab::start(ClusterOptions { gateway: true, ..ClusterOptions::default() });
    lab.create_fixtures("rbac");
    let config = "leaderElection: {leaseDuration: 6s, renewDeadline: 4s, retryPeriod: 1s}
controllers:
  publicExposure: {ipPool: [172.18.4.1]}
  snapshot: {vmRegistry: r.example.org, vmRegistrySecret: login}
  termination: {enabled: true}
  submission: {enabled: true}
  expiration: {enabled: true, notifications: false}
  instance: {gatewayApi: {enabled: true, parentRefs: [{name: labs, namespace: gateways}]}}
  tenant: {personalWorkspace: {enabled: true}, myDrive: {onTenantDeletion: delete}}\n";
    let kubeconfig = lab.service_account();
    // Of the daemons here, only the first serves webhooks: they cannot share a port.
    let port = free_port();
    let with_webhooks = format!("webhook: {{enabled: true, listen: \"127.0.0.1:{port}\"}}\n{config}");
    let mut daemon =
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "rbac", config: &with_webhooks });
    exercise(&lab);
    exercise_storage(&lab);
    exercise_uploads(&lab);
    // An Instance that is too old is deleted.
    expire(&lab, "rbac", "cloudvm", "1s");
    lab.await_gone("instances", NAMESPACE, "cloudvm");
    exercise_tenants(&lab);
    exercise_webhooks(&lab, port);
    standby_watches_the_lease(&lab, &kubeconfig, config);
    daemon.signal("TERM");
    daemon.wait(std::time::Duration::from_secs(30)).expect("it ends");
    drop(daemon);
    older_api_server(&lab, config);
    rights_are_used(&lab);
    finalizers_are_needed(&lab);
}

/// Runs a second daemon until its watch of the lease is open.
fn standby_watches_the_lease(lab: &Lab, kubeconfig: &Path, config: &str) {
    let standby = Daemon::start(&Options { kubeconfig, selector: "rbac", config });
    standby.wait_for("standby", |daemon| daemon.ready().1.contains("standby"));
    // The watch is open by the time the leader has renewed the lease twice.
    let renewed = || {
        let lease = lab.get("leases", "crownlabs-system", "crownlabs-controller-manager").expect("the lease");
        lease["spec"]["renewTime"].clone()
    };
    for _ in 0..2 {
        let before = renewed();
        standby.wait_for("a renewal", |_| renewed() != before);
    }
}

/// Runs a daemon against an API server before 1.34, for which it needs other requests. The proxy answers as one.
fn older_api_server(lab: &Lab, config: &str) {
    let proxy = Proxy::start(&lab.cluster).expect("the proxy");
    let older = r#"{"major": "1", "minor": "33", "gitVersion": "v1.33.0", "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}"#;
    proxy.set(Fault::Answer { body: older, matching: matching(|_, path| path.starts_with("/version")) });
    let through =
        lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a kubeconfig");
    let _daemon = Daemon::start(&Options { kubeconfig: &through, selector: "rbac", config });
    lab.patch("instances", NAMESPACE, "standalone", r#"{"spec": {"running": true}}"#);
    lab.await_phase(NAMESPACE, "standalone", "Ready");
}

/// Waits until the audit log, which is written a moment later, shows a use of every right and no refusal.
fn rights_are_used(lab: &Lab) {
    wait_until(PATIENCE, || {
        let entries = lab.cluster.audit().since(Mark::default()).expect("the audit log");
        let ours: Vec<_> = entries.iter().filter(|entry| entry.user == USER).collect();
        let forbidden: Vec<_> = ours.iter().filter(|entry| entry.code == 403).collect();
        assert!(forbidden.is_empty(), "{forbidden:#?}");
        let mut used: BTreeSet<String> = ours
            .iter()
            .map(|entry| {
                let slash = if entry.subresource.is_empty() { "" } else { "/" };
                format!("{} {}{slash}{}", entry.verb, entry.resource, entry.subresource)
            })
            .collect();
        used.extend(CHECKED.map(str::to_owned));
        let unused: Vec<_> = granted(lab).difference(&used).cloned().collect();
        unused.is_empty().then_some(()).ok_or_else(|| format!("granted but not used: {unused:?}"))
    });
}

/// Shows that the right on finalizers, which is not in the audit log, is needed: without it, an object with an owner is
/// refused.
fn finalizers_are_needed(lab: &Lab) {
    lab.kubectl(&[
        "create",
        "clusterrolebinding",
        "probe",
        "--clusterrole=edit",
        "--serviceaccount=crownlabs-system:probe",
    ]);
    lab.kubectl(&["create", "serviceaccount", "-n", "crownlabs-system", "probe"]);
    let owner = lab.get("instances", NAMESPACE, "standalone").expect("there");
    let service = serde_json::json!({
        "apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]},
        "metadata": {"name": "probe", "namespace": NAMESPACE, "ownerReferences": [{
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "name": "standalone",
            "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}]},
    });
    let user = "--as=system:serviceaccount:crownlabs-system:probe";
    let refusal = lab.try_kubectl(&["create", "-f", "-", user], &service.to_string());
    let refusal = refusal.expect_err("it must be refused");
    assert!(refusal.contains("blockOwnerDeletion"), "{refusal}");
}
