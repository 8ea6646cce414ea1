//! The decisions about requests, with stores of Tenants, Templates and Instances.

use std::sync::Arc;

use http::{HeaderMap, Request, Response};
use hyper::body::Bytes;
use serde_json::{Value, json};

use super::answer::{exchanged, login};
use super::door::{Decision, decide, decide_for_peer};
use super::machines::{Entry, Machines};
use super::request::Original;
use crate::api::instance::InstanceKind;
use crate::api::template::TemplateKind;
use crate::api::tenant::TenantKind;
use crate::api::{Kind, Object};
use crate::controllers::shared::ended_session::annotation;
use crate::controllers::shared::entrance::{ByManagedWorkspace, ByPersonalNamespace};
use crate::controllers::shared::machine_host::{HostKey, KEY_LENGTH, peer_label};
use crate::controllers::shared::machine_login::Pass;
use crate::fixtures::{now, time};
use crate::runtime::store::Store;

const BASE: &str = "labs.example.com";
const SIGN_IN: &str = "https://dashboard.example.com/login/machine";
const UID: &str = "7c1f0d3e-52f6-4a1d-9a39-4f7b2f7d0001";

fn key(byte: u8) -> HostKey {
    HostKey::parse(&[byte; KEY_LENGTH]).expect("a key")
}

/// The stores behind the machines.
struct World {
    tenants: Arc<Store<TenantKind>>,
    templates: Arc<Store<TemplateKind>>,
    instances: Arc<Store<InstanceKind>>,
    machines: Machines,
    version: u64,
}

/// Adds or replaces an object of a store.
fn put<T: Kind>(store: &Store<T>, version: &mut u64, mut object: Value) {
    *version += 1;
    object["metadata"]["resourceVersion"] = version.to_string().into();
    store.apply_event(serde_json::from_value::<Object<T>>(object).expect("an object"));
}

impl World {
    /// The machine `vm` of ada, of the course tea that bob manages, and eve, who manages another course.
    fn new() -> Self {
        let tenants = Arc::new(Store::<TenantKind>::new(true));
        let (templates, instances) = (Arc::new(Store::new(true)), Arc::new(Store::new(true)));
        tenants.index::<ByManagedWorkspace>();
        tenants.index::<ByPersonalNamespace>();
        let machines = Machines::new(Arc::clone(&instances), Arc::clone(&templates), Arc::clone(&tenants));
        let mut world = Self { tenants, templates, instances, machines, version: 0 };
        world.tenant("ada", &[("tea", "user")], &[]);
        world.tenant("bob", &[("tea", "manager")], &[]);
        world.tenant("eve", &[("coffee", "manager"), ("tea", "user")], &[]);
        let workspace = json!({"workspace.crownlabs.polito.it/WorkspaceRef": {"name": "tea"}});
        let template =
            json!({"metadata": {"name": "desktop", "namespace": "workspace-tea"}, "spec": workspace});
        put(&world.templates, &mut world.version, template);
        world.instance(&["main"]);
        world
    }

    fn tenant(&mut self, name: &str, workspaces: &[(&str, &str)], ended: &[&str]) {
        let workspaces: Vec<_> =
            workspaces.iter().map(|(name, role)| json!({"name": name, "role": role})).collect();
        let annotations: serde_json::Map<String, Value> =
            ended.iter().map(|session| (annotation(session), json!("2026-11-20T10:00:00Z"))).collect();
        let tenant = json!({
            "metadata": {"name": name, "uid": name, "annotations": annotations},
            "spec": {"workspaces": workspaces},
            "status": {"personalNamespace": {"created": true, "name": format!("tenant-{name}")}},
        });
        put(&self.tenants, &mut self.version, tenant);
    }

    fn instance(&mut self, environments: &[&str]) {
        self.shared_instance(environments, &json!([]));
    }

    /// The machine, which its owner shares with these people.
    fn shared_instance(&mut self, environments: &[&str], people: &Value) {
        let environments: Vec<_> = environments.iter().map(|name| json!({"name": name})).collect();
        let instance = json!({
            "metadata": {"name": "vm", "namespace": "tenant-ada", "uid": UID, "annotations": {
                "crownlabs.polito.it/shared-with": people.to_string(),
            }},
            "spec": {
                "template.crownlabs.polito.it/TemplateRef": {"name": "desktop", "namespace": "workspace-tea"},
                "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
            },
            "status": {"environments": environments},
        });
        put(&self.instances, &mut self.version, instance);
    }

    /// The decision about a request of a user for an environment. Without a user, the browser has no cookie.
    fn decision(&self, user: &str, environment: &str, more: &[(&str, &str)]) -> Decision {
        let label = key(1).label(UID, environment);
        let pass = Pass { user: user.to_owned(), session: format!("session of {user}"), until: 0 };
        let request = of_nginx(&format!("https://{label}.{BASE}/"), more);
        let original = Original::read(&request, BASE).expect("a machine");
        decide(&self.machines, &original, Some(&pass).filter(|pass| !pass.user.is_empty()))
    }
}

/// The people with whom ada shares the machine until this time.
fn people(until: &str) -> Value {
    json!([
        {"user": "kim", "access": "control", "until": until},
        {"user": "lee", "access": "view", "until": until},
        {"user": "max", "access": "control", "until": until},
    ])
}

/// The decision about a request of `user` at the host of `peer` for the environment `main`.
fn of_peer(world: &World, peer: &str, user: &str, more: &[(&str, &str)]) -> Decision {
    let label = peer_label(UID, "main", peer);
    let pass = Pass { user: user.to_owned(), session: format!("session of {user}"), until: 0 };
    let mut request = Request::get("/").header("host", format!("{label}.{BASE}"));
    for (name, value) in more {
        request = request.header(*name, *value);
    }
    let request = request.body(()).expect("a request");
    let original = Original::of_relay(&request, BASE).expect("a machine");
    let pass = Some(&pass).filter(|pass| !pass.user.is_empty());
    decide_for_peer(&world.machines, &original, pass, now())
}

fn of_nginx(url: &str, more: &[(&str, &str)]) -> Request<()> {
    let label = url.trim_start_matches("https://").split('.').next().expect("a label");
    let request = Request::get(format!("/auth/{label}"));
    let mut request = request.header("x-original-url", url).header("x-original-method", "GET");
    for (name, value) in more {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request")
}

fn of_envoy(host: &str, target: &str, more: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::get(format!("/authz{target}")).header("host", host);
    for (name, value) in more {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a request")
}

#[test]
fn the_tenant_and_the_managers_of_the_course_may_enter() {
    let world = World::new();
    world.machines.set_key(key(1));
    for (user, decision) in [
        ("ada", Decision::Allowed),
        ("bob", Decision::Allowed),
        ("eve", Decision::Denied),
        ("nobody", Decision::Denied),
        ("system:admin", Decision::Denied),
        ("", Decision::LogIn),
    ] {
        assert_eq!(world.decision(user, "main", &[]), decision, "{user}");
    }
    assert_eq!(world.decision("ada", "other", &[]), Decision::Denied, "no environment has this host");
}

#[test]
fn a_right_that_ends_and_a_logout_count_at_once() {
    let mut world = World::new();
    world.machines.set_key(key(1));
    assert_eq!(world.decision("bob", "main", &[]), Decision::Allowed);
    world.tenant("bob", &[("tea", "user")], &[]);
    assert_eq!(world.decision("bob", "main", &[]), Decision::Denied);
    world.tenant("ada", &[("tea", "user")], &["session of bob"]);
    assert_eq!(world.decision("ada", "main", &[]), Decision::Allowed, "another session");
    world.tenant("ada", &[("tea", "user")], &["session of ada"]);
    assert_eq!(world.decision("ada", "main", &[]), Decision::LogIn);
    world.instance(&[]);
    assert_eq!(world.decision("", "main", &[]), Decision::Denied, "the environment has no host any more");
}

#[test]
fn hosts_follow_the_key_and_the_environments() {
    let mut world = World::new();
    let is_known = |world: &World, byte: u8, name: &str| world.machines.is_known(&key(byte).label(UID, name));
    assert!(!is_known(&world, 1, "main"), "there is no key yet");
    world.machines.set_key(key(1));
    assert!(is_known(&world, 1, "main"));
    world.instance(&["main", "second"]);
    assert!(is_known(&world, 1, "main") && is_known(&world, 1, "second"));
    world.machines.set_key(key(2));
    assert!(!is_known(&world, 1, "main") && is_known(&world, 2, "main") && is_known(&world, 2, "second"));
    world.instance(&["second"]);
    assert!(!is_known(&world, 2, "main") && is_known(&world, 2, "second"));
}

#[test]
fn a_page_of_another_origin_and_the_path_of_the_login_reach_no_machine() {
    let world = World::new();
    world.machines.set_key(key(1));
    let sibling = format!("https://{}.{BASE}", key(1).label("another", "main"));
    assert_eq!(world.decision("ada", "main", &[("origin", &sibling)]), Decision::Denied);
    let script = [("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")];
    assert_eq!(world.decision("ada", "main", &script), Decision::Denied);
    let label = key(1).label(UID, "main");
    let pass = Pass { user: "ada".to_owned(), session: "s".to_owned(), until: 0 };
    for (target, decision) in [
        ("/", Decision::Allowed),
        ("/_crownlabs/login", Decision::Denied),
        ("/_crownlabs/", Decision::Denied),
        ("/_crownlabsx", Decision::Allowed),
    ] {
        let request = of_nginx(&format!("https://{label}.{BASE}{target}"), &[]);
        let original = Original::read(&request, BASE).expect("a machine");
        assert_eq!(decide(&world.machines, &original, Some(&pass)), decision, "{target}");
    }
}

#[test]
fn a_peer_has_a_host_that_no_one_else_may_enter() {
    let mut world = World::new();
    world.machines.set_key(key(1));
    world.tenant("kim", &[("tea", "user")], &[]);
    world.tenant("lee", &[("tea", "user")], &[]);
    world.tenant("max", &[("coffee", "user")], &[]);
    let label = peer_label(UID, "main", "kim");
    assert!(!world.machines.is_of_peer(&label), "it is not shared yet");
    world.shared_instance(&["main"], &people("2026-03-04T23:00:00Z"));
    assert!(world.machines.is_of_peer(&label) && !world.machines.is_known(&label));
    for (peer, user, decision) in [
        ("kim", "kim", Decision::Allowed),
        ("kim", "", Decision::LogIn),
        // The owner and the manager have another host.
        ("kim", "ada", Decision::Denied),
        ("kim", "bob", Decision::Denied),
        ("kim", "lee", Decision::Denied),
        ("lee", "lee", Decision::Denied),
        ("max", "max", Decision::Denied),
        ("eve", "eve", Decision::Denied),
    ] {
        assert_eq!(of_peer(&world, peer, user, &[]), decision, "{user} at the host of {peer}");
    }
    assert_eq!(world.decision("kim", "main", &[]), Decision::Denied, "the host of the owner");
    let sibling = format!("https://{}.{BASE}", key(1).label("another", "main"));
    assert_eq!(of_peer(&world, "kim", "kim", &[("origin", &sibling)]), Decision::Denied);
}

#[test]
fn the_right_of_a_peer_ends_with_the_annotation_its_end_the_enrolment_the_tenant_and_the_session() {
    let until = "2026-03-04T23:00:00Z";
    let mut world = World::new();
    let enter = |world: &World| of_peer(world, "kim", "kim", &[]);
    world.shared_instance(&["main"], &people(until));
    world.tenant("kim", &[("tea", "user")], &[]);
    assert_eq!(enter(&world), Decision::Allowed);
    world.tenant("kim", &[("coffee", "user")], &[]);
    assert_eq!(enter(&world), Decision::Denied, "another course");
    world.tenant("kim", &[("tea", "user")], &["session of kim"]);
    assert_eq!(enter(&world), Decision::LogIn, "a logout");
    world.tenant("kim", &[("tea", "user")], &[]);
    let pass = Pass { user: "kim".to_owned(), session: "s".to_owned(), until: 0 };
    let label = peer_label(UID, "main", "kim");
    let at = |at: &str| world.machines.entry_of_peer(&pass, &label, time(at));
    assert_eq!((at("2026-03-04T22:59:59Z"), at(until)), (Entry::Allowed, Entry::Denied));
    world.shared_instance(&["main"], &json!([]));
    assert_eq!(enter(&world), Decision::Denied, "removed by the owner");
    assert!(!world.machines.is_of_peer(&label));
    world.shared_instance(&["other"], &people(until));
    assert!(!world.machines.is_of_peer(&label), "another environment");
}

/// The status, `Location` and `Set-Cookie` of a response.
fn shown(answer: &Response<Bytes>) -> (u16, String, String) {
    let header = |headers: &HeaderMap, name: &str| {
        headers.get(name).map_or("", |value| value.to_str().expect("text")).to_owned()
    };
    let headers = answer.headers();
    (answer.status().as_u16(), header(headers, "location"), header(headers, "set-cookie"))
}

#[test]
fn each_gateway_sends_a_browser_without_a_login_to_the_dashboard() {
    let host = format!("{}.{BASE}", key(1).label(UID, "main"));
    let script = [("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")];
    let url = format!("https://{host}/a?b=c");
    let rd = "https%3A%2F%2F".to_owned() + &host.replace('.', "%2E") + "%2Fa%3Fb%3Dc";
    for (request, status, location) in [
        (of_nginx(&url, &[]), 401, String::new()),
        (of_nginx(&url, &script), 403, String::new()),
        (of_envoy(&host, "/a?b=c", &[]), 302, format!("{SIGN_IN}?rd={rd}")),
        (of_envoy(&host, "/a?b=c", &script), 401, String::new()),
    ] {
        let original = Original::read(&request, BASE).expect("a machine");
        assert_eq!(shown(&login(&original, SIGN_IN)), (status, location, String::new()));
    }
}

#[test]
fn the_cookie_of_a_login_reaches_the_browser_through_both_gateways() {
    let host = format!("{}.{BASE}:8443", key(1).label(UID, "main"));
    let (nginx, envoy) =
        (of_nginx(&format!("https://{host}/_crownlabs/login?code=x"), &[]), of_envoy(&host, "/x", &[]));
    for (request, status, location) in
        [(nginx, 401, String::new()), (envoy, 302, format!("https://{host}/a?b=c"))]
    {
        let original = Original::read(&request, BASE).expect("a machine");
        let answer = exchanged(&original, "/a?b=c", Some("n=v"));
        assert_eq!(shown(&answer), (status, location.clone(), "n=v".to_owned()));
        let answer = exchanged(&original, "/a?b=c", None);
        assert_eq!(shown(&answer), (status, location, String::new()), "the login begins again");
    }
}
