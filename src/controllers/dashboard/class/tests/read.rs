//! Tests of the reads: which requests a page and its updates send.

use std::sync::Arc;

use futures::FutureExt as _;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::fixtures::{PEOPLE, machine, person};
use crate::clients::oidc::{Provider, Settings};
use crate::config::Identity;
use crate::controllers::dashboard::class::filter::Filter;
use crate::controllers::dashboard::class::memory::{MOST_BYTES, Memory, Seen, Unread};
use crate::controllers::dashboard::class::read::Asked;
use crate::controllers::dashboard::live::broadcast::{Broadcast, Topic};
use crate::controllers::dashboard::student::read::Reads;
use crate::controllers::dashboard::user::users::{User, Users};
use crate::runtime::ObjectKey;
use crate::runtime::api_server::{self, ApiServer, refused};
use crate::runtime::client::{Credential, UserClient};
use crate::runtime::clock;
use crate::runtime::error::ApiError;

/// The objects of an API server, and the rights of its user.
#[derive(Default)]
struct World {
    people: Vec<Value>,
    machines: Vec<Value>,
    /// Whether the user may list the Instances of all namespaces.
    is_wide: bool,
    /// The namespace whose Instances the user may not read.
    closed: &'static str,
    /// Whether the user may not read Tenants.
    is_student: bool,
}

fn answer(world: &World, asked: &api_server::Asked) -> (u16, Value) {
    let list = |items: Vec<Value>| (200, json!({"metadata": {}, "items": items}));
    let of = |namespace: &str| -> Vec<Value> {
        let is_in = |one: &&Value| one["metadata"]["namespace"] == namespace;
        world.machines.iter().filter(is_in).cloned().collect()
    };
    let named = |items: &[Value], name: &str| {
        let found = items.iter().find(|one| one["metadata"]["name"] == name).cloned();
        found.map_or_else(|| refused(404, "NotFound", "it is not there"), |found| (200, found))
    };
    let path = asked.line.split([' ', '?']).nth(1).unwrap_or_default();
    let parts: Vec<&str> = path.trim_start_matches("/apis/crownlabs.polito.it/").split('/').collect();
    match parts.as_slice() {
        _ if asked.is("POST ") => (201, json!({"status": {"resourceRules": []}})),
        ["", "readyz"] => (200, json!("ok")),
        [_, "workspaces", "tea"] => {
            let spec = json!({"prettyName": "Tea", "quota": {"cpu": "1", "memory": "1Gi", "instances": 1}});
            (200, json!({"metadata": {"name": "tea"}, "spec": spec}))
        }
        [_, "tenants"] if world.is_student => refused(403, "Forbidden", "tenants is forbidden"),
        [_, "tenants"] => list(world.people.clone()),
        [_, "tenants", name] => named(&world.people, name),
        [_, "instances"] if !world.is_wide => refused(403, "Forbidden", "instances is forbidden"),
        [_, "instances"] => list(world.machines.clone()),
        [_, "namespaces", of, ..] if *of == world.closed => refused(403, "Forbidden", "no"),
        [_, "namespaces", _, "templates"] => list(Vec::new()),
        [_, "namespaces", namespace, "instances"] => list(of(namespace)),
        [_, "namespaces", namespace, "instances", name] => named(&of(namespace), name),
        _ => refused(404, "NotFound", "it is not there"),
    }
}

struct Setup {
    world: Arc<Mutex<World>>,
    api: ApiServer,
    users: Users,
    user: User,
    memory: Memory,
    broadcast: Arc<Broadcast>,
}

async fn setup(world: World) -> Setup {
    let world = Arc::new(Mutex::new(world));
    let served = Arc::clone(&world);
    let api = ApiServer::start(move |asked| answer(&served.lock(), asked)).await;
    let (provider, _file) = Provider::new(Settings {
        issuer: "https://auth.example.com".to_owned(),
        client_id: "dashboard".to_owned(),
        client_secret_file: String::new(),
        ca_file: String::new(),
        redirect_uri: String::new(),
    })
    .expect("a provider");
    let users = Users::new(UserClient::new(&api.config).expect("a client"), provider, Identity::Token);
    let credential = Credential::token("token").expect("a token");
    let user = User::new(credential, "prof".to_owned(), Timestamp::MAX);
    Setup { world, api, users, user, memory: Memory::new(MOST_BYTES), broadcast: Broadcast::new(10) }
}

impl Setup {
    /// Reads the class for a page, or for the update of a page.
    async fn read(&self, is_update: bool) -> Result<Arc<Seen>, ApiError> {
        let filter = Filter::default();
        let asked = Asked {
            course: "tea",
            filter: &filter,
            now: clock::now(),
            is_update,
            is_whole: false,
            memory: &self.memory,
            broadcast: &self.broadcast,
        };
        Reads { users: &self.users, user: &self.user }.class(&asked).await
    }

    /// Returns the requests about students and machines since the last call, without the group and the query.
    fn requests(&self) -> Vec<String> {
        let path = |line: String| {
            let path = line.split([' ', '?']).nth(1)?.strip_prefix("/apis/crownlabs.polito.it/v1alpha2/")?;
            let is_of_class = path.contains("instances") || path.contains("tenants");
            (is_of_class && path != "tenants/prof").then(|| path.to_owned())
        };
        let mut requests: Vec<String> = self.api.lines().into_iter().filter_map(path).collect();
        requests.sort();
        requests
    }

    fn changed(&self, namespace: &str, name: &str) {
        self.broadcast.class_changed("tea", ObjectKey::new(namespace, name));
    }
}

fn people() -> Vec<Value> {
    PEOPLE.iter().map(|(name, first, last)| person(name, first, last, "user")).collect()
}

fn machines(seen: &Seen) -> Vec<String> {
    seen.class.machines.keys().map(ToString::to_string).collect()
}

#[tokio::test]
async fn an_update_reads_only_the_objects_that_have_changed() {
    let vms = vec![machine("ada", "a", "Ready"), machine("bob", "b", "Ready"), machine("eve", "e", "Ready")];
    let setup = setup(World { people: people(), machines: vms, is_wide: true, ..World::default() }).await;
    let seen = setup.read(false).await.expect("a class");
    assert_eq!((seen.class.people.len(), machines(&seen).len(), seen.class.is_wide), (4, 3, true));
    assert!(seen.course.own.topics.contains(&Topic::Class("tea".to_owned())));
    assert_eq!(setup.requests(), ["instances", "tenants"]);
    setup.read(true).await.expect("a class");
    assert_eq!(setup.requests(), Vec::<String>::new(), "nothing has changed");
    {
        let mut world = setup.world.lock();
        world.machines[0]["status"]["phase"] = json!("Failed");
        world.machines.remove(2);
        world.machines.push(machine("zoe", "z", "Starting"));
        world.people[1]["spec"]["workspaces"] = json!([{"name": "tea", "role": "manager"}]);
    }
    for (namespace, name) in [("tenant-ada", "a"), ("tenant-eve", "e"), ("tenant-zoe", "z"), ("", "bob")] {
        setup.changed(namespace, name);
    }
    let seen = setup.read(true).await.expect("a class");
    let expected = [
        "namespaces/tenant-ada/instances/a",
        "namespaces/tenant-eve/instances/e",
        "namespaces/tenant-zoe/instances/z",
        "tenants/bob",
    ];
    assert_eq!(setup.requests(), expected);
    assert_eq!(machines(&seen), ["tenant-ada/a", "tenant-bob/b", "tenant-zoe/z"]);
    assert_eq!(format!("{:?}", seen.class.machines[&ObjectKey::new("tenant-ada", "a")].standing), "Failed");
    let names: Vec<&str> = seen.class.people.keys().map(|name| &**name).collect();
    assert_eq!(names, ["ada", "eve", "zoe"], "bob is a manager now");
    setup.read(true).await.expect("a class");
    assert_eq!(setup.requests(), Vec::<String>::new());
    setup.read(false).await.expect("a class");
    assert_eq!(setup.requests(), ["instances", "tenants"], "a page that a browser opens is listed");
}

#[tokio::test]
async fn an_update_after_too_many_changes_lists_the_class() {
    let setup = setup(World { people: people(), is_wide: true, ..World::default() }).await;
    setup.read(false).await.expect("a class");
    setup.requests();
    (0..200).for_each(|number| setup.changed("tenant-ada", &format!("vm-{number}")));
    setup.read(true).await.expect("a class");
    assert_eq!(setup.requests(), ["instances", "tenants"]);
}

#[tokio::test]
async fn a_user_with_rights_in_namespaces_reads_the_shown_rows_first_and_the_others_in_the_next_update() {
    let people = (0..130).map(|number| person(&format!("s{number:03}"), "", "", "user")).collect();
    let vms = vec![machine("s000", "vm", "Ready"), machine("s129", "vm", "Ready")];
    let world = World { people, machines: vms, closed: "tenant-s007", ..World::default() };
    let setup = setup(world).await;
    let begin = clock::now();
    let seen = setup.read(false).await.expect("a class");
    assert_eq!((seen.class.is_wide, seen.class.missing().count(), machines(&seen).len()), (false, 30, 1));
    assert_eq!(seen.class.unread.get("tenant-s007"), Some(&Unread::Forbidden));
    assert_eq!(setup.requests().len(), 2 + 100);
    // The page is told to update at once.
    let topics = vec![Topic::Tenant("prof".to_owned())];
    let page = setup.broadcast.listen(topics, setup.broadcast.since(begin)).expect("there is room");
    assert!(page.changed().now_or_never().is_some());
    let seen = setup.read(true).await.expect("a class");
    assert_eq!((seen.class.missing().count(), machines(&seen).len()), (0, 2));
    assert_eq!(setup.requests().len(), 30, "only the other namespaces");
    assert!(page.changed().now_or_never().is_none());
    setup.changed("tenant-s129", "vm");
    setup.changed("tenant-s007", "vm");
    setup.changed("tenant-stranger", "vm");
    setup.read(true).await.expect("a class");
    assert_eq!(setup.requests(), ["namespaces/tenant-s129/instances/vm"]);
}

#[tokio::test]
async fn the_many_machines_of_one_student_change_only_the_row_of_the_student() {
    let mut flood = machine("eve", "e", "Ready");
    flood["spec"]["prettyName"] = json!("x".repeat(2 << 20));
    let vms = vec![machine("ada", "a", "Ready"), flood];
    let setup = setup(World { people: people(), machines: vms, is_wide: true, ..World::default() }).await;
    for _ in 0..2 {
        let seen = setup.read(false).await.expect("a class");
        assert_eq!(machines(&seen), ["tenant-ada/a"]);
        let unread: Vec<_> = seen.class.unread.iter().map(|(of, why)| (of.as_str(), *why)).collect();
        assert_eq!(unread, [("tenant-eve", Unread::TooMany)]);
    }
    let wide = setup.requests().into_iter().filter(|path| path == "instances").count();
    assert_eq!(wide, 1, "the list that is too long is not tried again");
}

#[tokio::test]
async fn a_student_who_may_not_list_tenants_is_refused() {
    let setup = setup(World { is_student: true, ..World::default() }).await;
    assert!(matches!(setup.read(false).await, Err(ApiError::Forbidden(why)) if why.contains("tenants")));
}
