//! The reconciler with its stores and its allocator, without an API server.

use super::*;
use crate::config::Config;
use crate::controllers::public_exposure::reconcile::PublicExposureReconciler;
use crate::controllers::setup::{Definition, Setup};
use crate::kinds::LoadBalancerServiceKind;
use crate::runtime::component::Component;
use crate::runtime::gate::Gate;
use crate::runtime::plan::KindInfo;
use crate::runtime::queue::Queue;
use crate::runtime::reconciler::Reconciler;
use crate::runtime::store::{AnyStore, Store, StoreFactory};
use crate::runtime::store_set::StoreSet;
use crate::runtime::watch::Selection;

/// A reconciler with one address and the automatic ports 30000 and 30001.
struct World {
    factory: StoreFactory,
    queue: Arc<Queue>,
    reconciler: PublicExposureReconciler,
    /// The last resource version.
    version: std::cell::Cell<u64>,
}

impl World {
    fn new() -> Self {
        let mut config = Config::default();
        config.controllers.public_exposure.ip_pool = vec!["10.0.0.1".to_owned()];
        config.controllers.public_exposure.automatic_port_range = "30000-30001".parse().expect("a range");
        let mut factory = StoreFactory::default();
        let mut set = StoreSet::new("publicExposure", &mut factory);
        let built = PublicExposureReconciler::build(&mut Setup::new(&config, Gate::open()), &mut set);
        let (reconciler, _) = built.expect("a pool");
        let queue = Arc::clone(set.queue());
        let world = Self { factory, queue, reconciler, version: std::cell::Cell::new(0) };
        world.offer(&json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Template",
            "metadata": {"name": "box", "namespace": "workspace-tea"},
            "spec": {"allowPublicExposure": true, "environmentList": [{"name": "main"}]},
        }));
        world
            .offer(&namespace("tenant-ada", &json!({"crownlabs.polito.it/operator-selector": "production"})));
        world
    }

    /// Shows an object in its newest version.
    fn offer(&self, object: &Value) {
        self.version.set(self.version.get() + 1);
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = self.version.get().to_string().into();
        assert!(self.factory.offer(&object).expect("an object"), "no store takes {object}");
    }

    /// Adds an Instance with ports, and further members.
    fn instance(&self, name: &str, ports: &Value, more: &Value) -> ObjectKey {
        let mut instance = json!({
            "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance",
            "metadata": {
                "name": name, "namespace": "tenant-ada", "uid": format!("uid-{name}"),
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "running": true,
                "template.crownlabs.polito.it/TemplateRef": {"name": "box", "namespace": "workspace-tea"},
                "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
                "publicExposure": {"ports": ports},
            },
        });
        merge::apply(&mut instance, more);
        self.offer(&instance);
        ObjectKey::new("tenant-ada", name)
    }

    /// The address and the public ports that an Instance is allocated now.
    fn allocated(&self, instance: &ObjectKey) -> Option<(String, Vec<u16>)> {
        let allocation = self.reconciler.observe(instance).expect("there").allocation?;
        Some((allocation.address.to_string(), allocation.ports.iter().map(|(_, port)| *port).collect()))
    }

    /// Ends a reconcile with these failed writes.
    fn settle(&self, instance: &ObjectKey, failures: &[(&'static str, ApiError)]) {
        let observed = self.reconciler.observe(instance).expect("there");
        let failure = |(kind, error): &(&'static str, ApiError)| Failure {
            component: Component::Whole,
            kind,
            name: "any".to_owned(),
            error: error.clone(),
        };
        let outcome = Outcome { failures: failures.iter().map(failure).collect(), ..Outcome::default() };
        self.reconciler.settle(&observed, &outcome);
    }

    fn instances(&mut self) -> Arc<Store<InstanceKind>> {
        self.factory.store(&Selection::ALL)
    }

    /// Drains the queue, and returns the names of the objects.
    async fn queued(&self) -> Vec<String> {
        let mut names = Vec::new();
        while self.queue.waiting() > 0 {
            let job = self.queue.next().await.expect("the queue is open");
            names.push(job.key.name.to_string());
            self.queue.done(job, crate::runtime::queue::Action::AwaitChange);
        }
        names.sort();
        names
    }
}

fn namespace(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
}

/// One automatic port.
fn any() -> Value {
    json!([{"name": "web", "port": 0, "targetPort": 80}])
}

/// One port with this number.
fn of(port: u16) -> Value {
    json!([{"name": "web", "port": port, "targetPort": 80}])
}

#[expect(clippy::unnecessary_wraps, reason = "it is compared with what may be nothing")]
fn at(ports: &[u16]) -> Option<(String, Vec<u16>)> {
    Some(("10.0.0.1".to_owned(), ports.to_vec()))
}

fn transient() -> ApiError {
    ApiError::Transient { message: "no answer".to_owned(), retry_after: None }
}

/// The Service of an Instance, with its controller.
fn service_of(instance: &str, controller: &str, port: u16) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": format!("{instance}-pe"), "namespace": "tenant-ada", "uid": format!("service-{instance}"),
            "labels": {"crownlabs.polito.it/component": "pe"},
            "annotations": {"metallb.io/loadBalancerIPs": "10.0.0.1"},
            "ownerReferences": [{
                "apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "controller": true,
                "name": controller, "uid": format!("uid-{controller}"),
            }],
        },
        "spec": {"type": "LoadBalancer", "ports": [{"name": "web", "port": port, "targetPort": 80, "protocol": "TCP"}]},
    })
}

#[test]
fn only_instances_in_namespaces_of_ours_are_reconciled() {
    let world = World::new();
    let key = world.instance("box", &any(), &json!({}));
    assert_eq!(world.allocated(&key), at(&[30000]));
    assert!(
        world.reconciler.observe(&ObjectKey::new("tenant-ada", "other")).is_none(),
        "the Instance does not exist"
    );
    world.offer(&namespace("tenant-ada", &json!({})));
    assert!(world.reconciler.observe(&key).is_none(), "the namespace does not match");
}

#[test]
fn an_instance_in_the_namespace_of_another_tenant_is_not_exposed() {
    let world = World::new();
    let labels = json!({
        "crownlabs.polito.it/operator-selector": "production", "crownlabs.polito.it/type": "tenant",
        "crownlabs.polito.it/name": "bob",
    });
    world.offer(&namespace("tenant-ada", &labels));
    let key = world.instance("box", &any(), &json!({}));
    let observed = world.reconciler.observe(&key).expect("there");
    assert!(matches!(observed.request, Validated::Unknown) && observed.allocation.is_none());
}

#[test]
fn the_services_are_read_before_the_first_allocation() {
    let (kind, selection) = World::new().reconciler.read_first().pop().expect("a kind");
    assert_eq!(kind, KindInfo::of::<LoadBalancerServiceKind>());
    assert!(selection.matches(&service_of("box", "box", 80)));
    assert!(!selection.matches(&json!({"metadata": {"labels": {}}})));
}

#[test]
fn an_instance_that_is_being_deleted_gets_no_ports() {
    let world = World::new();
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-02T00:00:00Z"}});
    let key = world.instance("box", &any(), &deleted);
    assert_eq!(world.allocated(&key), None);
    assert_eq!(world.allocated(&world.instance("other", &any(), &json!({}))), at(&[30000]), "they are free");
}

#[test]
fn a_write_without_an_answer_keeps_its_ports_and_a_refused_one_frees_them() {
    let refused = || ApiError::Invalid("no such thing".to_owned());
    for (failures, is_kept) in [
        (vec![("Service", transient())], true),
        (vec![("NetworkPolicy", refused()), ("Service", transient())], true),
        (vec![("Service", refused())], false),
        // A failure of another object says nothing about the Service.
        (vec![("NetworkPolicy", refused())], true),
        // Nothing failed, and there was no write, so the store is up to date.
        (vec![], false),
    ] {
        let world = World::new();
        let first = world.instance("first", &of(80), &json!({}));
        assert!(
            !world.reconciler.observe(&first).expect("there").is_unanswered,
            "nothing was allocated before"
        );
        world.settle(&first, &failures);
        let second = world.instance("second", &of(80), &json!({}));
        assert_eq!(world.allocated(&second).is_none(), is_kept, "{failures:?}");
        assert_eq!(world.reconciler.observe(&first).expect("there").is_unanswered, is_kept, "{failures:?}");
    }
}

/// After a lost response, a rejection of the next write does not free the ports that the first one may still get.
#[test]
fn a_refusal_after_a_lost_answer_frees_nothing() {
    let world = World::new();
    let first = world.instance("first", &of(80), &json!({}));
    world.settle(&first, &[("Service", transient())]);
    world.settle(&first, &[("Service", ApiError::Invalid("no such thing".to_owned()))]);
    assert_eq!(world.allocated(&world.instance("second", &of(80), &json!({}))), None);
}

#[tokio::test]
async fn a_waiting_instance_is_queued_when_its_port_is_freed_unless_it_was_forgotten() {
    let mut world = World::new();
    world.offer(&service_of("first", "first", 80));
    let first = world.instance("first", &of(80), &json!({}));
    let second = world.instance("second", &of(80), &json!({}));
    assert_eq!((world.allocated(&first), world.allocated(&second)), (at(&[80]), None));
    assert_eq!(world.queued().await, ["first", "second"], "the first lists");
    let selection = world.reconciler.read_first()[0].1.clone();
    let services: Arc<Store<LoadBalancerServiceKind>> = world.factory.store(&selection);
    let gone = |name: &str| {
        let key = ObjectKey::new("tenant-ada", format!("{name}-pe"));
        services.record_deletion(&key, &format!("service-{name}"), "test");
    };
    gone("first");
    assert_eq!(world.allocated(&second), at(&[80]));
    // The deletion of the Service queues the Instance with that name and the waiting Instances.
    assert_eq!(world.queued().await, ["first", "second"]);

    // A forgotten Instance no longer waits, and holds nothing.
    world.offer(&service_of("other", "other", 90));
    let third = world.instance("third", &of(90), &json!({}));
    assert_eq!(world.allocated(&third), None);
    world.instances().record_deletion(&third, "uid-third", "test");
    world.reconciler.forget(&third);
    world.reconciler.forget(&second);
    world.queued().await;
    gone("other");
    assert_eq!(world.queued().await, ["other"], "its controller alone");
    assert_eq!(
        world.allocated(&world.instance("fourth", &of(80), &json!({}))),
        at(&[80]),
        "second is forgotten"
    );
}

#[test]
fn the_ports_in_a_status_are_reserved_until_the_instance_is_deleted() {
    let mut world = World::new();
    let status = json!({"status": {"publicExposure": {
        "externalIP": "10.0.0.1", "phase": "Ready",
        "ports": [{"name": "web", "port": 30000, "targetPort": 80, "protocol": "TCP"}],
    }}});
    let first = world.instance("first", &any(), &status);
    let second = world.instance("second", &any(), &json!({}));
    assert_eq!(world.allocated(&second), at(&[30001]), "30000 belongs to the first");
    assert_eq!(world.allocated(&first), at(&[30000]));
    world.reconciler.forget(&second);
    world.reconciler.forget(&first);
    world.instances().record_deletion(&second, "uid-second", "test");
    assert_eq!(world.allocated(&world.instance("third", &of(30000), &json!({}))), None, "it is still there");
    world.instances().record_deletion(&first, "uid-first", "test");
    assert_eq!(world.allocated(&ObjectKey::new("tenant-ada", "third")), at(&[30000]));
}

#[test]
fn the_name_of_a_service_has_one_owner() {
    let problem = |world: &World, key: &ObjectKey| match world.reconciler.observe(key).expect("there").request
    {
        Validated::Kept(problem) => problem.message,
        other => format!("{other:?}"),
    };
    // The controller of the existing Service has the name, regardless of age.
    let world = World::new();
    let (dotted, dashed) =
        (world.instance("a.b", &of(80), &json!({})), world.instance("a-b", &of(90), &json!({})));
    world.offer(&service_of("a-b", "a-b", 90));
    assert!(problem(&world, &dotted).contains("Instance a-b"), "{}", problem(&world, &dotted));
    assert_eq!(world.allocated(&dashed), at(&[90]));
    // A predecessor with the same name is not a conflict.
    let world = World::new();
    let again = world.instance("a-b", &of(90), &json!({"metadata": {"uid": "uid-new"}}));
    world.offer(&service_of("a-b", "a-b", 90));
    assert!(!problem(&world, &again).contains("Instance"), "{}", problem(&world, &again));
    // The name alone does not make a predecessor: its kind must be Instance.
    let mut foreign = service_of("a-b", "a-b", 90);
    merge::apply(
        &mut foreign,
        &json!({"metadata": {"ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "Deployment", "controller": true, "name": "a-b", "uid": "other",
        }]}}),
    );
    world.offer(&foreign);
    assert!(problem(&world, &again).contains("Deployment a-b"), "{}", problem(&world, &again));
    // Without a Service, the older of two Instances has the name.
    let world = World::new();
    let older = world.instance("a.b", &of(80), &json!({}));
    let later = json!({"metadata": {"creationTimestamp": "2026-01-02T00:00:00Z"}});
    let younger = world.instance("a-b", &of(90), &later);
    assert!(problem(&world, &younger).contains("Instance a.b"), "{}", problem(&world, &younger));
    assert_eq!(world.allocated(&older), at(&[80]));
}

#[test]
fn of_two_services_with_one_port_the_younger_moves() {
    let world = World::new();
    let (older, younger) =
        (world.instance("older", &any(), &json!({})), world.instance("younger", &any(), &json!({})));
    for (name, day) in [("older", 1), ("younger", 2)] {
        let mut service = service_of(name, name, 30000);
        service["metadata"]["creationTimestamp"] = format!("2026-01-0{day}T00:00:00Z").into();
        world.offer(&service);
    }
    assert_eq!((world.allocated(&older), world.allocated(&younger)), (at(&[30000]), at(&[30001])));
}

/// The port of a Service is kept even if the Service lacks other requested ports and the status contains another port.
#[test]
fn an_intact_service_comes_before_the_status() {
    let status = |port: u16| {
        json!({"status": {"publicExposure": {
            "externalIP": "10.0.0.1", "phase": "Ready",
            "ports": [{"name": "web", "port": port, "targetPort": 80, "protocol": "TCP"}],
        }}})
    };
    let two =
        json!([{"name": "web", "port": 0, "targetPort": 80}, {"name": "ssh", "port": 22, "targetPort": 22}]);
    let world = World::new();
    let key = world.instance("box", &two, &status(30000));
    world.offer(&service_of("box", "box", 30001));
    assert_eq!(world.allocated(&key), at(&[22, 30001]));
    // A Service with another type was modified.
    let world = World::new();
    let key = world.instance("box", &two, &status(30000));
    let mut changed = service_of("box", "box", 30001);
    changed["spec"]["type"] = "ClusterIP".into();
    world.offer(&changed);
    assert_eq!(world.allocated(&key), at(&[22, 30000]));
}
