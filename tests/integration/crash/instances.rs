//! The daemon is killed after each of its writes for Instances; the resulting objects are the same.

use serde_json::Value;

use super::{Scenario, crash_after};
use crate::access;
use crate::lab::{Lab, TEMPLATES, instance};
use crate::route_policy;
use cluster::Options;

/// The kinds of objects that the daemon creates for Instances.
const KINDS: &str = "instances.crownlabs.polito.it,services,ingresses,secrets,persistentvolumeclaims,deployments,\
                     virtualmachines.kubevirt.io,virtualmachineinstances.kubevirt.io";

/// The settings of a run.
#[derive(Clone, Copy)]
struct Lives<'a> {
    lab: &'a Lab,
    /// Whether machines start; the test then waits for them.
    are_simulated: bool,
    /// The number of writes between two crashes.
    every: u64,
}

/// Creates an Instance of a Template, switches it off and on, and deletes it: once without a crash, then once with a crash
/// after each write, or after every other one. Returns the number of writes.
fn live(
    fixtures: &'static str,
    template: &'static str,
    config: &str,
    Lives { lab, are_simulated, every }: Lives<'_>,
) -> u64 {
    let namespace = format!("tenant-{fixtures}");
    let running = |running: bool| {
        let namespace = namespace.clone();
        move |lab: &Lab| {
            let patch = format!(r#"{{"spec": {{"running": {running}}}}}"#);
            lab.patch("instances", &namespace, template, &patch);
        }
    };
    let scenario = Scenario {
        name: template,
        fixtures,
        steps: vec![
            Box::new(|lab| lab.apply(&instance(fixtures, template, template))),
            Box::new(running(false)),
            Box::new(running(true)),
            Box::new(|lab| {
                lab.delete_in_foreground("instances", &namespace, &[template]);
                for kind in ["virtualmachines.kubevirt.io", "virtualmachineinstances.kubevirt.io"] {
                    lab.await_gone(kind, &namespace, template);
                }
            }),
        ],
        list: Box::new(|lab| lab.list(KINDS, &namespace)),
        is_complete: if are_simulated { is_ready_or_off } else { |_| true },
        configs: &[config],
    };
    let writes = crash_after(lab, &scenario, |n| n % every == 0);
    assert!(writes >= 8, "{template}: only {writes} writes");
    writes
}

/// Whether an Instance, its machine and its claims have reached their final state.
fn is_ready_or_off(object: &Value) -> bool {
    let (spec, status) = (&object["spec"], &object["status"]);
    match object["kind"].as_str().unwrap_or_default() {
        "Instance" => status["phase"] == if spec["running"] == false { "Off" } else { "Ready" },
        "VirtualMachine" => {
            status["printableStatus"] == if spec["runStrategy"] == "Halted" { "Stopped" } else { "Running" }
        }
        "PersistentVolumeClaim" => status["phase"] == "Bound",
        _ => true,
    }
}

/// The test itself creates the namespace and the Tenant.
const CONFIG: &str = "controllers: {tenant: {enabled: false}, workspace: {enabled: false}}\n";

#[test]
fn machines_that_become_ready_survive_a_crash_after_every_other_write() {
    let lab = Lab::shared();
    let _course = lab.course("crashready");
    let lives = Lives { lab: &lab, are_simulated: true, every: 2 };
    let writes = live("crashready", "vm-persistent", CONFIG, lives);
    println!("{writes} writes");
}

#[test]
fn several_environments_survive_a_crash_after_every_other_write() {
    let lab = Lab::shared_unsimulated();
    let _course = lab.course("crashpair");
    let resources = "resources: {cpu: 1, reservedCPUPercentage: 10, memory: 64Mi, disk: 1Gi}";
    lab.apply(&format!(
        "apiVersion: crownlabs.polito.it/v1alpha2
kind: Template
metadata: {{name: pair, namespace: workspace-crashpair}}
spec:
  prettyName: pair
  description: a web page, a machine, and a machine whose disk is a copy of a volume
  workspace.crownlabs.polito.it/WorkspaceRef: {{name: crashpair}}
  environmentList:
  - {{name: web, environmentType: Standalone, image: \"r.example.org/web:1\", mountMyDriveVolume: false, {resources}}}
  - {{name: machine, environmentType: VirtualMachine, image: \"r.example.org/vm:1\", persistent: true, {resources}}}
  - {{name: local, environmentType: LocalVM, image: workspace-crashpair/golden, persistent: true, {resources}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: golden, namespace: workspace-crashpair}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
"
    ));
    let lives = Lives { lab: &lab, are_simulated: false, every: 2 };
    let config = CONFIG.replace("controllers: {", "controllers: {instance: {localVm: {enabled: true}}, ");
    println!("{} writes", live("crashpair", "pair", &config, lives));
}

#[test]
fn instances_of_every_type_survive_a_crash_after_every_write() {
    // Nodes and virtual machines are not simulated, so that only the daemon writes these objects.
    let lab = Lab::shared_unsimulated();
    let _course = lab.course("crash");
    let mut total = 0;
    let lives = Lives { lab: &lab, are_simulated: false, every: 1 };
    for template in TEMPLATES {
        total += live("crash", template, CONFIG, lives);
    }
    println!("{total} crashes");
}

#[test]
fn a_route_and_its_policy_survive_a_crash_after_every_write() {
    let lab = Lab::start(Options { gateway: true, simulate: false, ..Options::default() });
    lab.create_fixtures("crashguard");
    let namespace = "tenant-crashguard";
    route_policy::install(&lab);
    route_policy::await_collection(&lab, namespace);
    // The rights of the kind in the template, as the chart grants them.
    lab.apply(
        "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: crashguard}
rules:
- {apiGroups: [gateway.envoyproxy.io], resources: [securitypolicies], verbs: [get, list, watch, create, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: crashguard}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: crashguard}
subjects: [{kind: ServiceAccount, name: crownlabs, namespace: crownlabs-system}]
",
    );
    let others = "controllers: {tenant: {enabled: false}, workspace: {enabled: false}, ";
    let config = route_policy::config("1h", "{realm: labs}").replace("controllers: {", others);
    let running = |running: bool| {
        move |lab: &Lab| {
            let patch = format!(r#"{{"spec": {{"running": {running}}}}}"#);
            lab.patch("instances", namespace, "web", &patch);
        }
    };
    let kinds = format!("{KINDS},httproutes,{}", route_policy::KIND);
    let scenario = Scenario {
        name: "the policy of a route",
        fixtures: "crashguard",
        steps: vec![
            Box::new(|lab| lab.apply(&instance("crashguard", "web", "standalone"))),
            Box::new(running(false)),
            Box::new(running(true)),
            Box::new(|lab| lab.delete_in_foreground("instances", namespace, &["web"])),
        ],
        list: Box::new(|lab| lab.list(&kinds, namespace)),
        is_complete: |_| true,
        configs: &[&config],
    };
    let writes = crash_after(&lab, &scenario, |_| true);
    assert!(writes >= 10, "only {writes} writes");
}

#[test]
fn the_proxy_of_an_instance_survives_a_crash_after_every_third_write() {
    let lab = Lab::shared_unsimulated();
    let _course = lab.course("shield");
    let namespace = "tenant-shield";
    let running = |running: bool| {
        move |lab: &Lab| {
            let patch = format!(r#"{{"spec": {{"running": {running}}}}}"#);
            lab.patch("instances", namespace, "web", &patch);
        }
    };
    let (_folder, secret) = access::secret_file("s3cret");
    let others = "tenant: {enabled: false}, workspace: {enabled: false}";
    let on = access::config("https://auth.example.com/realms/labs", &secret)
        .replace("controllers: {", &format!("controllers: {{{others}, "));
    let off = format!("controllers: {{{others}}}\n");
    let scenario = Scenario {
        name: "an OAuth2 proxy",
        fixtures: "shield",
        steps: vec![
            Box::new(|lab| lab.apply(&instance("shield", "web", "standalone"))),
            Box::new(running(false)),
            Box::new(running(true)),
            // They are switched off.
            Box::new(|_| {}),
            Box::new(|lab| {
                lab.delete_in_foreground("instances", namespace, &["web"]);
            }),
        ],
        list: Box::new(|lab| lab.list(KINDS, namespace)),
        is_complete: |_| true,
        configs: &[&on, &on, &on, &off],
    };
    let writes = crash_after(&lab, &scenario, |n| n % 3 == 0);
    assert!(writes >= 20, "only {writes} writes");
}
