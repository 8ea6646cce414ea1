use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::*;
use crate::api::instance::{EnvironmentStatus, InstanceSpec};
use crate::kinds::ServiceKind;
use crate::runtime::api_server::{ApiServer, Asked, refused};
use crate::runtime::clock;
use crate::runtime::silent::SilentServer;
use crate::runtime::store::{AnyStore, ByController};

#[test]
fn the_service_of_the_environment_is_chosen() {
    let mut instance = Instance::new(Some("tenant-ada"), "exam.1", InstanceSpec::default());
    let ip = |last: u8| IpAddr::from([10, 0, 0, last]);
    // The Tenant may write the status, so no address in it counts.
    instance.status.ip = ip(66).to_string().into();
    let one = [("exam-1".to_owned(), ip(1)), ("exam-1-pe".to_owned(), ip(9))];
    assert_eq!(choose(&instance, "main", &one), Some(ip(1)));
    let several = [("exam-1-client".to_owned(), ip(2)), ("exam-1-server".to_owned(), ip(3))];
    assert_eq!(choose(&instance, "client", &several), Some(ip(2)));
    assert_eq!(choose(&instance, "other", &several), None, "it is not known yet which is the first");
    let status = |name: &str| EnvironmentStatus {
        name: name.into(),
        ip: ip(66).to_string().into(),
        ..EnvironmentStatus::default()
    };
    instance.status.environments = vec![status("server"), status("client")];
    assert_eq!(choose(&instance, "other", &several), Some(ip(3)), "the first one of the Instance");
    assert_eq!(choose(&instance, "client", &several), Some(ip(2)));
    assert_eq!(choose(&instance, "main", &[]), None);
}

/// Ada owns the namespace `tenant-ada` and is a user of `netlab`. Bob manages `netlab`. Eve manages another course and
/// claims in her labels to manage `netlab`. Max's Tenant is being deleted.
fn tenants() -> Arc<Store<TenantKind>> {
    let store = Arc::new(Store::<TenantKind>::new(true));
    store.index::<entrance::ByManagedWorkspace>();
    store.index::<entrance::ByPersonalNamespace>();
    store.begin_list();
    for (name, workspace, role) in [
        ("ada", "netlab", "user"),
        ("bob", "netlab", "manager"),
        ("eve", "other", "manager"),
        ("max", "netlab", "manager"),
        ("kim", "netlab", "user"),
        ("lee", "netlab", "user"),
    ] {
        let mut tenant = json!({
            "metadata": {"name": name, "labels": {"crownlabs.polito.it/workspace-netlab": "manager"}},
            "spec": {"workspaces": [{"name": workspace, "role": role}]},
            "status": {"personalNamespace": {"created": true, "name": format!("tenant-{name}")}},
        });
        if name == "max" {
            tenant["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        store.list_object(serde_json::from_value(tenant).expect("a Tenant"));
    }
    store.end_list();
    store
}

fn services() -> Arc<Store<ServiceKind>> {
    let store = Arc::new(Store::<ServiceKind>::new(true));
    store.index::<ByController>();
    let owner = json!({"apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "name": "vm", "uid": "u", "controller": true});
    let service = json!({
        "metadata": {"name": "vm", "namespace": "tenant-ada", "ownerReferences": [owner]},
        "spec": {"clusterIP": "10.0.0.5"},
    });
    store.list_object(serde_json::from_value(service).expect("a Service"));
    store.end_list();
    store
}

fn access(config: &kube::Config) -> Access {
    let users = UserClient::new(config).expect("a client");
    let (instances, templates) = (instances(), templates());
    let addresses = InstanceAddresses::of(services());
    Access { users, tenants: tenants(), instances, templates, addresses, port: 22 }
}

/// The people with whom ada shares the machine: kim controls, lee looks on, and max has a Tenant that is being deleted.
const PEOPLE: [(&str, &str); 3] = [("kim", "control"), ("lee", "view"), ("max", "control")];

/// The machine of ada, in this version, which ada shares with these people for an hour.
fn shared_with(people: &[(&str, &str)], version: &str) -> Instance {
    let until = (clock::now() + SignedDuration::from_hours(1)).to_string();
    let people = people.iter().map(|(user, access)| json!({"user": user, "access": access, "until": until}));
    let people = Value::Array(people.collect()).to_string();
    let annotations = json!({"crownlabs.polito.it/shared-with": people});
    let instance = json!({
        "metadata": {
            "name": "vm", "namespace": "tenant-ada", "uid": "u", "resourceVersion": version, "annotations": annotations,
        },
        "spec": {
            "template.crownlabs.polito.it/TemplateRef": {"name": "vm", "namespace": "workspace-netlab"},
            "tenant.crownlabs.polito.it/TenantRef": {"name": "ada"},
        },
        "status": {"phase": "Ready", "environments": [{"name": "main"}]},
    });
    serde_json::from_value(instance).expect("an Instance")
}

fn instances() -> Arc<Store<InstanceKind>> {
    let store = Arc::new(Store::<InstanceKind>::new(true));
    store.begin_list();
    store.list_object(shared_with(&PEOPLE, "1"));
    store.end_list();
    store
}

fn templates() -> Arc<Store<TemplateKind>> {
    let spec = json!({"workspace.crownlabs.polito.it/WorkspaceRef": {"name": "netlab"}});
    let template = json!({"metadata": {"name": "vm", "namespace": "workspace-netlab"}, "spec": spec});
    let store = Arc::new(Store::<TemplateKind>::new(true));
    store.begin_list();
    store.list_object(serde_json::from_value(template).expect("a Template"));
    store.end_list();
    store
}

fn request(namespace: &str) -> Request {
    Request {
        token: "Bearer token".to_owned(),
        user: None,
        groups: Vec::new(),
        namespace: namespace.to_owned(),
        instance: "vm".to_owned(),
        environment: "main".to_owned(),
        columns: 80,
        rows: 24,
    }
}

/// The data of the API server about the user of the token.
#[derive(Clone)]
struct Known {
    name: &'static str,
    /// Whether the user may read the Instance and the Template.
    reads_instance: bool,
    reads_template: bool,
    is_administrator: bool,
    /// The Tenant and the Template in the spec of the Instance.
    tenant: &'static str,
    template: &'static str,
    phase: &'static str,
}

const READER: Known = Known {
    name: "ada",
    reads_instance: true,
    reads_template: true,
    is_administrator: false,
    tenant: "ada",
    template: "workspace-netlab/vm",
    phase: "Ready",
};

impl Known {
    fn answer(&self, asked: &Asked) -> (u16, Value) {
        if asked.is("POST /apis/authentication.k8s.io/v1/selfsubjectreviews") {
            return (201, json!({"status": {"userInfo": {"username": self.name}}}));
        }
        if asked.is("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews") {
            return (201, json!({"status": {"allowed": self.is_administrator}}));
        }
        if asked.line.contains("/templates/") {
            let spec = json!({"workspace.crownlabs.polito.it/WorkspaceRef": {"name": "netlab"}});
            let template = json!({"metadata": {"name": "vm", "namespace": "workspace-netlab"}, "spec": spec});
            return if self.reads_template { (200, template) } else { refused(403, "Forbidden", "no") };
        }
        if !self.reads_instance {
            return refused(403, "Forbidden", "no");
        }
        let (namespace, name) = self.template.split_once('/').expect("two parts");
        let spec = json!({
            "template.crownlabs.polito.it/TemplateRef": {"name": name, "namespace": namespace},
            "tenant.crownlabs.polito.it/TenantRef": {"name": self.tenant},
        });
        let metadata = json!({"name": "vm", "namespace": "tenant-ada", "uid": "u"});
        (200, json!({"metadata": metadata, "spec": spec, "status": {"phase": self.phase}}))
    }

    /// The decision, and the requests to the API server after the one about the user's name.
    async fn decided(&self) -> (Result<Entitlement, String>, Vec<String>) {
        let known = self.clone();
        let api = ApiServer::start(move |asked| known.answer(asked)).await;
        let (access, request) = (access(&api.config), request("tenant-ada"));
        let user = access.user(&request).await.expect("a user");
        let machine = access.machine(&user, &request).await;
        let lines = api.lines().split_off(1);
        (machine.map(|machine| machine.entitlement).map_err(|why| why.to_string()), lines)
    }
}

#[tokio::test]
async fn the_right_to_read_an_instance_does_not_open_its_machine() {
    let stranger = Denied::Unrelated.to_string();
    for (known, expected) in [
        (READER, Ok(Entitlement::Owner)),
        (Known { name: "bob", ..READER }, Ok(Entitlement::Manager)),
        // A manager of another course, a Tenant that is being deleted, a user without a Tenant, and a name in another
        // case.
        (Known { name: "eve", ..READER }, Err(&*stranger)),
        (Known { name: "max", ..READER }, Err(&*stranger)),
        (Known { name: "oscar", ..READER }, Err(&*stranger)),
        (Known { name: "Ada", ..READER }, Err(&*stranger)),
        // A user who may write another user's Instance can name any Tenant in it.
        (Known { name: "eve", tenant: "eve", ..READER }, Err(&*stranger)),
        (Known { tenant: "eve", ..READER }, Ok(Entitlement::Owner)),
        // A manager who may not read the Template does not count as its manager. The owner does not need to read it.
        (Known { name: "bob", reads_template: false, ..READER }, Err(&*stranger)),
        (Known { reads_template: false, ..READER }, Ok(Entitlement::Owner)),
        // Text that users write never becomes part of a path.
        (Known { name: "bob", template: "workspace-netlab/vm?x=", ..READER }, Err(&*stranger)),
        (Known { name: "bob", template: "../templates/vm", ..READER }, Err(&*stranger)),
        (Known { name: "oscar", is_administrator: true, ..READER }, Ok(Entitlement::Administrator)),
        (Known { name: "eve", is_administrator: true, ..READER }, Ok(Entitlement::Administrator)),
    ] {
        let (decided, lines) = known.decided().await;
        let case = format!("{} of {}", known.name, known.template);
        assert_eq!(decided.as_ref().map_err(String::as_str), expected.as_ref().map_err(|why| *why), "{case}");
        assert!(lines.iter().all(|line| !line.contains(['?']) && !line.contains("..")), "{case}: {lines:?}");
    }
    let (_, lines) = READER.decided().await;
    let instance = "GET /apis/crownlabs.polito.it/v1alpha2/namespaces/tenant-ada/instances/vm";
    assert_eq!(lines, [instance], "the owner needs no further request");
}

#[tokio::test]
async fn a_peer_gets_a_terminal_without_a_right_on_the_instance() {
    let unreadable = Denied::ByApiServer(ApiError::Forbidden("no".to_owned())).to_string();
    let unrelated = Denied::Unrelated.to_string();
    for (name, reads_instance, expected) in [
        ("kim", false, Ok(Entitlement::Peer(sharing::Access::Control))),
        ("lee", false, Ok(Entitlement::Peer(sharing::Access::View))),
        // Managers of other courses may read all Instances.
        ("kim", true, Ok(Entitlement::Peer(sharing::Access::Control))),
        ("max", false, Err(unreadable.clone())),
        ("eve", false, Err(unreadable)),
        ("eve", true, Err(unrelated)),
    ] {
        let known = Known { name, reads_instance, ..READER };
        assert_eq!(known.decided().await.0, expected, "{name}");
    }
}

/// An open terminal of a user.
fn open(entitlement: Entitlement) -> Machine {
    let address = SocketAddr::from(([10, 0, 0, 5], 22));
    let (uid, environment) = ("u".to_owned(), "main".to_owned());
    Machine { instance: ObjectKey::new("tenant-ada", "vm"), uid, environment, address, entitlement }
}

#[tokio::test]
async fn the_right_to_an_open_terminal_follows_the_stores() {
    let access = access(&SilentServer::start().config());
    let machine = open(Entitlement::Owner);
    let of = |user: &str, machine: &Machine| access.current(user, machine, clock::now());
    for (user, expected) in [
        ("ada", Some(Entitlement::Owner)),
        ("bob", Some(Entitlement::Manager)),
        ("kim", Some(Entitlement::Peer(sharing::Access::Control))),
        ("lee", Some(Entitlement::Peer(sharing::Access::View))),
        ("eve", None),
        ("max", None),
        ("nobody", None),
    ] {
        assert_eq!(of(user, &machine), expected, "{user}");
    }
    let former = Machine { uid: "former".to_owned(), ..machine };
    assert_eq!(of("ada", &former), None, "another machine has the name");
}

#[tokio::test(start_paused = true)]
async fn a_terminal_ends_within_ten_seconds_after_the_right() {
    let server = SilentServer::start();
    let access = access(&server.config());
    let (request, machine) = (request("tenant-ada"), open(Entitlement::Peer(sharing::Access::Control)));
    let is_view = AtomicBool::new(false);
    let mut lost = pin!(access.lost("kim", &request, &machine, &is_view));
    let is_open = timeout(Duration::from_mins(1), &mut lost).await.is_err();
    assert!(is_open && !is_view.load(Ordering::Relaxed));
    access.instances.apply_event(shared_with(&[("kim", "view")], "2"));
    let is_open = timeout(Duration::from_secs(10), &mut lost).await.is_err();
    assert!(is_open && is_view.load(Ordering::Relaxed), "input is discarded from now on");
    access.instances.apply_event(shared_with(&[("lee", "view")], "3"));
    timeout(Duration::from_secs(10), lost).await.expect("the terminal ends");
}

#[tokio::test]
async fn system_accounts_are_refused_whatever_their_rights() {
    for name in ["system:serviceaccount:tenant-ada:ada", "system:admin", "system:anonymous"] {
        let known = Known { name, is_administrator: true, ..READER };
        assert_eq!(known.decided().await, (Err(Denied::System.to_string()), Vec::new()), "{name}");
    }
}

#[tokio::test]
async fn the_user_whom_an_account_impersonates_is_the_user_and_an_ignored_impersonation_is_refused() {
    let api = ApiServer::start(|asked| READER.answer(asked)).await;
    let access = access(&api.config);
    let of = |user: &str| Request { user: Some(user.to_owned()), ..request("tenant-ada") };
    assert_eq!(access.user(&of("ada")).await.expect("a user"), "ada");
    let ignored = access.user(&of("bob")).await.expect_err("another user");
    assert_eq!(
        ignored.to_string(),
        "the API server, or a proxy in front of it, ignores impersonation: it identified the user as ada"
    );
    assert!(!api.lines().is_empty(), "the requests until now");
    assert!(access.user(&of("system:admin")).await.is_err());
    assert_eq!(api.lines(), Vec::<String>::new(), "a reserved name causes no request");
}

#[tokio::test]
async fn a_stranger_does_not_learn_whether_the_machine_is_on() {
    let off = Known { phase: "Off", ..READER };
    let expected = Denied::NotReady(InstancePhase::Off).to_string();
    assert_eq!(off.decided().await.0, Err(expected));
    let (decided, _) = Known { name: "eve", ..off }.decided().await;
    assert_eq!(decided, Err(Denied::Unrelated.to_string()));
}

#[tokio::test]
async fn invalid_names_cause_no_requests() {
    let api = ApiServer::start(|asked| READER.answer(asked)).await;
    let access = access(&api.config);
    let denied = access.machine("ada", &request("../x")).await.expect_err("no namespace");
    assert!(matches!(denied, Denied::Name), "{denied}");
    assert!(api.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_silent_api_server_is_not_a_refusal_and_times_out() {
    let server = SilentServer::start();
    let (access, request) = (access(&server.config()), request("tenant-ada"));
    let begin = tokio::time::Instant::now();
    let denied = access.user(&request).await.expect_err("no answer");
    assert!(matches!(denied, Denied::Unanswered(_)), "{denied}");
    assert_eq!(begin.elapsed(), Duration::from_secs(10));
    let broken = ApiServer::start(|asked| {
        if asked.is("POST /apis/authorization") {
            return refused(500, "InternalError", "etcd is away");
        }
        Known { name: "eve", ..READER }.answer(asked)
    });
    let broken = broken.await;
    let denied = super::tests::access(&broken.config).machine("eve", &request).await.expect_err("no answer");
    assert_eq!(denied.to_string(), "cannot query the API server: etcd is away");
}
