//! The RBAC rules of the daemon: they are sufficient, and each of them is needed.

mod loops;
mod mirrors;
mod pod_networks;
mod rights;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::json;

use crate::daemon::{Daemon, Options, reserved_port};
use crate::exam_server::ExamServer;
use crate::expiration::expire;
use crate::lab::{Lab, PATIENCE, TEMPLATES, instance, wait_until};
use crate::shared_volumes::shared_volume;
use crate::snapshots::{await_reason, snapshot};
use crate::submission::{hold_jobs, request};
use crate::tenants::{tenant, workspace};
use crate::termination::await_condition;
use crate::{access, image_list, webhook};
use cluster::Options as ClusterOptions;
use cluster::audit::{AuditEntry, Mark};
use cluster::proxy::{Fault, Proxy, matching};
use mirrors::exercise_mirrors;
use pod_networks::exercise_pod_networks;
use rights::{CHECKED, Shown, granted};

const NAMESPACE: &str = "tenant-rbac";
const USER: &str = "system:serviceaccount:crownlabs-system:crownlabs";

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
    // A repeated error is counted with a patch of the same event.
    let of = |template: &str| {
        format!(r#"{{"spec": {{"template.crownlabs.polito.it/TemplateRef": {{"name": "{template}"}}}}}}"#)
    };
    lab.patch("instances", NAMESPACE, "refused", &of("container"));
    lab.await_phase(NAMESPACE, "refused", "Ready");
    lab.patch("instances", NAMESPACE, "refused", &of("absent"));
    lab.await_fault(NAMESPACE, "refused", "TemplateNotFound");
    exercise_wait(lab);
    for template in TEMPLATES {
        lab.patch("instances", NAMESPACE, template, r#"{"spec": {"running": false}}"#);
    }
    for template in TEMPLATES {
        lab.await_phase(NAMESPACE, template, "Off");
        lab.await_gone("services", NAMESPACE, template);
    }
}

/// Makes an Instance wait until the events of its namespace are read.
fn exercise_wait(lab: &Lab) {
    // No node has that much memory.
    let resources = json!({"cpu": 1, "reservedCPUPercentage": 10, "memory": "100Ti"});
    let huge = json!([{"name": "main", "environmentType": "Standalone", "image": "r.example.org/web:1",
        "persistent": false, "mountMyDriveVolume": false, "resources": resources}]);
    lab.create_template("rbac", "huge", "standalone", &huge);
    let audit = lab.cluster.audit();
    let mark = audit.mark().expect("the audit log");
    lab.apply(&instance("rbac", "huge", "huge"));
    wait_until(PATIENCE, || {
        let entries = audit.since(mark).expect("the audit log");
        let mut lists = entries.iter().filter(|entry| entry.verb == "list" && entry.resource == "events");
        let is_ours =
            |entry: &AuditEntry| entry.namespace == NAMESPACE && entry.user_agent.starts_with("crownlabs/");
        lists.any(is_ours).then_some(()).ok_or_else(|| "no list of the events".to_owned())
    });
    lab.delete("instances", NAMESPACE, &["huge"]);
}

/// The same for the loops of snapshots and shared volumes. The virtual machines are off.
fn exercise_storage(lab: &Lab, shown: &mut Shown) {
    lab.apply(&snapshot("rbac", "image", "vm-persistent", "image"));
    lab.await_value("instancesnapshots", NAMESPACE, "image", "/status/phase", "Completed");
    lab.apply(&snapshot("rbac", "refused", "vm", "image"));
    lab.await_value("instancesnapshots", NAMESPACE, "refused", "/status/phase", "Failed");
    // A rejected Job is retried.
    let quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none, namespace: tenant-rbac}\n\
                 spec: {hard: {count/jobs.batch: \"0\"}}\n";
    lab.apply(quota);
    lab.await_value("resourcequotas", NAMESPACE, "none", "/status/hard/count~1jobs.batch", "0");
    lab.apply(&snapshot("rbac", "again", "vm-persistent", "image"));
    await_reason(lab, NAMESPACE, "again", "Pending", "ResourceQuotaExceeded");
    lab.delete("resourcequota", NAMESPACE, &["none"]);
    lab.patch("instancesnapshots", NAMESPACE, "again", r#"{"spec": {"imageName": "other"}}"#);
    lab.await_value("instancesnapshots", NAMESPACE, "again", "/status/phase", "Completed");
    lab.apply(&shared_volume("rbac", "data", "1Gi"));
    lab.await_value("sharedvolumes", "workspace-rbac", "data", "/status/phase", "Ready");
    shown.look(lab);
    lab.delete("sharedvolume", "workspace-rbac", &["data"]);
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
    lab.delete("resourcequota", NAMESPACE, &["small"]);
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

/// Causes rejections where the webhooks send requests, because the object is not in a store.
fn exercise_webhooks(lab: &Lab, port: u16) {
    // Only two users get rights: rights for everyone would apply to the daemon, too.
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
    for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        lab.delete(kind, "", &["crownlabs-webhook"]);
    }
    lab.delete("clusterrolebinding", "", &["editor"]);
}

/// The same for the loops of Tenants and Workspaces.
fn exercise_tenants(lab: &Lab, shown: &mut Shown) {
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
    shown.look(lab);
    lab.patch(
        "tenants",
        "default",
        "rbac.t",
        r#"{"spec": {"workspaces": [{"name": "rbac-course", "role": "manager"}]}}"#,
    );
    let manages = "crownlabs-manage-templates";
    wait_until(PATIENCE, || {
        let binding = lab.get("rolebindings", "workspace-rbac-course", manages);
        binding.map(|_| ()).ok_or_else(|| "the binding of the manager".to_owned())
    });
    shown.look(lab);
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
    lab.delete("workspace", "", &["rbac-course"]);
    lab.delete("tenant", "", &["rbac.t"]);
    lab.await_gone("persistentvolumeclaims", "mydrive-pvcs", "rbac-t-drive");
}

#[test]
fn the_rbac_rules_are_sufficient_and_all_of_them_are_used() {
    let lab = Lab::start(ClusterOptions {
        gateway: true,
        cross_namespace_volumes: true,
        ..ClusterOptions::default()
    });
    lab.create_fixtures("rbac");
    let registry = ExamServer::start();
    let lists = image_list::keys("rbac", &registry);
    let config = &format!(
        "leaderElection: {{}}
controllers:
  publicExposure: {{ipPool: [172.18.4.1]}}
  snapshot: {{vmRegistry: r.example.org, vmRegistrySecret: login}}
  termination: {{enabled: true, allowCidrs: [127.0.0.0/8]}}
  submission: {{enabled: true}}
  expiration: {{enabled: true, notifications: false}}
  instance: {{gatewayApi: {{enabled: true, parentRefs: [{{name: labs, namespace: gateways}}]}}, stalledAfter: 60s}}
  podConfig: {{enabled: true, lostNodeGrace: 3s}}
  pvcMirror: {{enabled: true}}
  tenant: {{personalWorkspace: {{enabled: true}}, myDrive: {{onTenantDeletion: delete}}, instancesClusterRole: crownlabs-own-instances}}
  imageList: {{enabled: true, {lists}}}\n"
    );
    let kubeconfig = lab.service_account();
    // Only the first of the daemons here serves webhooks: they cannot share a port.
    let port = reserved_port();
    let with_webhooks = format!("webhook: {{enabled: true, listen: \"127.0.0.1:{port}\"}}\n{config}");
    // Another installation has taken it, and the Lease of that installation is gone.
    lab.apply(&tenant("rbac", "rbac.left", ""));
    let mark = "crownlabs.polito.it/operator-selector=rbac (lease elsewhere/crownlabs-controller-manager)";
    lab.kubectl(&["annotate", "tenant", "rbac.left", &format!("crownlabs.polito.it/finalized-by={mark}")]);
    let mut daemon =
        Daemon::start(&Options { kubeconfig: &kubeconfig, selector: "rbac", config: &with_webhooks });
    lab.await_ready("tenants", "rbac.left");
    lab.delete("tenant", "", &["rbac.left"]);
    exercise(&lab);
    image_list::exercise(&lab, "rbac", &registry);
    let mut shown = Shown::default();
    exercise_storage(&lab, &mut shown);
    exercise_uploads(&lab);
    // An Instance that is too old is deleted.
    expire(&lab, "rbac", "cloudvm", "1s");
    lab.await_gone("instances", NAMESPACE, "cloudvm");
    exercise_tenants(&lab, &mut shown);
    exercise_pod_networks(&lab, &mut shown);
    exercise_mirrors(&lab);
    exercise_webhooks(&lab, port);
    standby_watches_the_lease(&lab, &kubeconfig, config);
    daemon.signal("TERM");
    daemon.wait(std::time::Duration::from_secs(30)).expect("it ends");
    drop(daemon);
    exercise_access(&lab, &kubeconfig, config);
    older_api_server(&lab, config);
    rights_are_used(&lab, &shown);
    finalizers_are_needed(&lab);
}

/// Runs a daemon that gives an Instance an OAuth2 proxy, and then one that removes the remaining objects of the proxy.
fn exercise_access(lab: &Lab, kubeconfig: &Path, config: &str) {
    let (_folder, secret) = access::secret_file("s3cret");
    let with_proxies = access::config("https://auth.example.com/realms/labs", &secret);
    let with_proxies = format!("leaderElection: {{}}\n{with_proxies}");
    let mut daemon = Daemon::start(&Options { kubeconfig, selector: "rbac", config: &with_proxies });
    lab.patch("instances", NAMESPACE, "standalone", r#"{"spec": {"running": true}}"#);
    let proxy = "standalone-oauth2-proxy";
    lab.await_value("deployments", NAMESPACE, proxy, "/kind", "Deployment");
    daemon.signal("TERM");
    daemon.wait(std::time::Duration::from_secs(30)).expect("it ends");
    drop(daemon);
    let _daemon = Daemon::start(&Options { kubeconfig, selector: "rbac", config });
    for kind in ["deployments", "secrets"] {
        lab.await_gone(kind, NAMESPACE, proxy);
    }
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

/// Runs a daemon against an API server before 1.34, which needs other requests. The proxy answers like such a server.
fn older_api_server(lab: &Lab, config: &str) {
    let proxy = Proxy::start(&lab.cluster).expect("the proxy");
    let older = r#"{"major": "1", "minor": "33", "gitVersion": "v1.33.0", "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}"#;
    proxy.set(Fault::Answer { body: older, matching: matching(|_, path| path.starts_with("/version")) });
    let through =
        lab.cluster.kubeconfig_via(&proxy.url(), "crownlabs-system", "crownlabs").expect("a kubeconfig");
    // No node has that much memory: the Job of a snapshot does not start, and its pods are read before it is deleted.
    let huge =
        "vmRegistrySecret: login, startDeadline: 5s, pusherMemoryRequest: 100Ti, pusherMemoryLimit: 100Ti";
    let config = config.replace("vmRegistrySecret: login", huge);
    let _daemon = Daemon::start(&Options { kubeconfig: &through, selector: "rbac", config: &config });
    lab.patch("instances", NAMESPACE, "standalone", r#"{"spec": {"running": true}}"#);
    lab.await_phase(NAMESPACE, "standalone", "Ready");
    lab.apply(&snapshot("rbac", "stuck", "vm-persistent", "image"));
    lab.await_value("instancesnapshots", NAMESPACE, "stuck", "/status/phase", "Failed");
}

/// Waits until the audit log, which has a short delay, shows a use of every right and no rejection.
fn rights_are_used(lab: &Lab, shown: &Shown) {
    wait_until(PATIENCE, || {
        let entries = lab.cluster.audit().since(Mark::default()).expect("the audit log");
        let ours: Vec<_> = entries.iter().filter(|entry| entry.user == USER).collect();
        // A quota rejects the Job of this snapshot.
        let by_quota = |entry: &AuditEntry| (&*entry.resource, &*entry.name) == ("jobs", "again");
        let forbidden: Vec<_> = ours.iter().filter(|entry| entry.code == 403 && !by_quota(entry)).collect();
        assert!(forbidden.is_empty(), "{forbidden:#?}");
        let mut used: BTreeSet<String> = ours
            .iter()
            .flat_map(|entry| {
                let slash = if entry.subresource.is_empty() { "" } else { "/" };
                let right =
                    format!("{} {}/{}{slash}{}", entry.verb, entry.group, entry.resource, entry.subresource);
                [format!("{right} {}", entry.name), right]
            })
            .collect();
        used.extend(CHECKED.map(str::to_owned));
        used.extend(shown.0.iter().cloned());
        let unused: Vec<_> = granted(lab).difference(&used).cloned().collect();
        unused.is_empty().then_some(()).ok_or_else(|| format!("granted but not used: {unused:?}"))
    });
}

/// Shows that the rights on finalizers, which are not in the audit log, are needed: without them, an object with such
/// an owner is rejected.
fn finalizers_are_needed(lab: &Lab) {
    lab.kubectl(&[
        "create",
        "clusterrolebinding",
        "probe",
        "--clusterrole=edit",
        "--serviceaccount=crownlabs-system:probe",
    ]);
    lab.kubectl(&["create", "serviceaccount", "-n", "crownlabs-system", "probe"]);
    let user = "--as=system:serviceaccount:crownlabs-system:probe";
    for (version, kind) in [
        ("crownlabs.polito.it/v1alpha2", "Instance"),
        ("crownlabs.polito.it/v1alpha2", "InstanceSnapshot"),
        ("crownlabs.polito.it/v1alpha2", "SharedVolume"),
        ("crownlabs.polito.it/v1alpha2", "Tenant"),
        ("crownlabs.polito.it/v1alpha1", "Workspace"),
        ("podconfig.opdev.io/v1alpha1", "PodConfig"),
    ] {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]},
            "metadata": {"name": "probe", "namespace": NAMESPACE, "ownerReferences": [{
                "apiVersion": version, "kind": kind, "name": "owner",
                "uid": "0a", "controller": true, "blockOwnerDeletion": true}]},
        });
        let refusal = lab.try_kubectl(&["create", "-f", "-", user], &service.to_string());
        let refusal = refusal.expect_err("it must be refused");
        assert!(refusal.contains("blockOwnerDeletion"), "{kind}: {refusal}");
    }
}
