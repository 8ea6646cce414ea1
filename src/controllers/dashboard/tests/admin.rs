//! The pages of administrators and of Announcements, for the rules of all pages.

use std::sync::Arc;

use maud::Markup;
use serde_json::json;

use super::fixtures::{condition, instance, now, read, workspace};
use super::people::course;
use crate::api::image_list::ImageList;
use crate::api::{Announcement, Tenant};
use crate::controllers::dashboard::admin::cluster::Cluster;
use crate::controllers::dashboard::admin::cluster::nodes::{Nodes, Requested};
use crate::controllers::dashboard::admin::cluster::view::cluster;
use crate::controllers::dashboard::admin::courses::view as courses;
use crate::controllers::dashboard::admin::courses::{Course, Courses};
use crate::controllers::dashboard::admin::frame::Administrator;
use crate::controllers::dashboard::admin::overview::Overview;
use crate::controllers::dashboard::admin::overview::loops::{Loops, NotRead};
use crate::controllers::dashboard::admin::overview::problems::Problems;
use crate::controllers::dashboard::admin::overview::view::overview;
use crate::controllers::dashboard::admin::people::view as people;
use crate::controllers::dashboard::admin::people::{People, Person};
use crate::controllers::dashboard::admin::read::Count;
use crate::controllers::dashboard::announcements::view::of_course;
use crate::controllers::dashboard::history::model::History;
use crate::controllers::dashboard::student::Rights;
use crate::controllers::dashboard::ui::view::View;
use crate::kinds::Node;
use crate::runtime::outages::{OutageState, ServerState};
use crate::runtime::readiness::pods::DaemonPod;
use crate::runtime::readiness::state::{Fault, LoopReport, ReplicaState};

/// Returns the pages with their names. A user with these rights sees them, and others have written this text.
pub fn pages(view: &View<'_>, rights: &dyn Rights, text: &str) -> Vec<(&'static str, Markup)> {
    let of = Administrator { rights, namespace: "crownlabs-system" };
    let announcements = announcements(text);
    let whole = overview_of(text);
    let unread = Overview {
        courses: Err(text.to_owned()),
        capacity: Err(text.to_owned()),
        problems: Err(text.to_owned()),
        loops: Loops::default(),
        ..whole.clone()
    };
    let courses_of = Courses { rows: vec![workspace("net", text, "", 3)], next: "t0".to_owned() };
    let all = People { rows: vec![person(text)], next: "t0".to_owned(), found: None };
    let found = People { next: String::new(), found: Some(30), ..all.clone() };
    let one = Person { tenant: person(text), history: History::default() };
    vec![
        ("admin", overview(view, &of, &whole, &announcements)),
        ("admin-unread", overview(view, &of, &unread, &[])),
        ("admin-courses", courses::list(view, &of, "a=b", &courses_of)),
        ("admin-course", courses::page(view, &of, &course_of(text))),
        ("admin-people", people::list(view, &all)),
        ("admin-found", people::list(view, &found)),
        ("admin-person", people::page(view, &of, &one)),
        ("admin-cluster", cluster(view, &cluster_of(text))),
        ("announcements", of_course(view, rights, &course(), &announcements)),
    ]
}

fn announcements(text: &str) -> Vec<Arc<Announcement>> {
    let of = |name: &str, until: Option<&str>| {
        let metadata = json!({"namespace": "crownlabs-system", "name": name, "uid": name, "resourceVersion": "1",
            "creationTimestamp": "2026-11-20T09:00:00Z"});
        Arc::new(read(json!({"metadata": metadata, "spec": {"title": text, "text": text, "until": until}})))
    };
    vec![of("one", None), of("two", Some("2026-12-01T00:00:00Z")), of("three", Some("2026-11-21T00:00:00Z"))]
}

fn overview_of(text: &str) -> Overview {
    let some = || text.to_owned();
    let report = |name: &str, state: &str| LoopReport {
        name: name.to_owned(),
        state: state.to_owned(),
        message: some(),
    };
    let states = ["ready", "waiting", "failing", "other"];
    let outage = OutageState { seconds: 85, effect: some(), error: some() };
    let state = ReplicaState {
        version: some(),
        loops: states.map(|state| report(state, state)).to_vec(),
        faults: vec![Fault { about: some(), message: some() }],
        servers: vec![
            ServerState { system: some(), server: some(), outage: Some(outage) },
            ServerState { system: "mail server".to_owned(), ..ServerState::default() },
        ],
        ..ReplicaState::default()
    };
    let pod = DaemonPod { name: some(), leads: true, state: Some(state), ..DaemonPod::default() };
    let mut problems = Problems::default();
    let failed = json!({"conditions": [condition("Ready", "False", "ImagePullFailed", text)]});
    problems.add(&instance("vm", text, ("workspace-net", "desktop"), true, failed), now());
    Overview {
        courses: Ok(Count { count: 3, is_more: false }),
        people: Count { count: 500, is_more: true },
        capacity: Ok(Nodes::of(&nodes(), Ok(Requested::default())).total()),
        loops: Loops::of(&[pod], vec![NotRead { what: some(), reason: some() }]),
        problems: Ok(problems),
    }
}

fn nodes() -> Vec<Node> {
    let of = |name: &str, cordoned: bool, ready: &str| {
        read(json!({"metadata": {"name": name}, "spec": {"unschedulable": cordoned}, "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "allocatable": {"cpu": "8", "memory": "16Gi", "nvidia.com/gpu": "2"}}}))
    };
    vec![of("a", false, "True"), of("b", true, "True"), of("c", false, "Unknown")]
}

fn cluster_of(text: &str) -> Cluster {
    let stale = condition("Stale", "True", "RegistryUnreachable", text);
    let list: ImageList =
        read(json!({"metadata": {"name": "crownlabs", "uid": "i1", "resourceVersion": "1"},
        "spec": {"registryName": text, "images": [{"name": "a", "versions": ["1"]}]},
        "status": {"conditions": [stale]}}));
    Cluster { nodes: Nodes::of(&nodes(), Err(text.to_owned())), images: Ok(vec![list]) }
}

fn course_of(text: &str) -> Course {
    Course {
        workspace: workspace("net", text, "immediate", 3),
        people: Ok(Count { count: 120, is_more: false }),
        templates: Ok(Count { count: 2, is_more: false }),
        volumes: Err(text.to_owned()),
        machines: Ok(Count { count: 500, is_more: true }),
    }
}

/// A person with a quota and a personal workspace.
fn person(text: &str) -> Tenant {
    let quota = json!({"cpu": "4", "memory": "8Gi", "instances": 2});
    let roles = ["user", "manager", "candidate", "other"];
    let courses = roles.map(|role| json!({"name": format!("of-{role}"), "role": role}));
    read(json!({
        "metadata": {"name": "ada.rossi", "uid": "t1", "resourceVersion": "1"},
        "spec": {"firstName": text, "lastName": text, "email": text, "lastLogin": "2026-11-20T09:00:00Z",
            "workspaces": courses, "quota": quota, "personalWorkspace": quota},
        "status": {"quota": quota, "failingWorkspaces": ["of-user"],
            "conditions": [condition("Ready", "False", "KeycloakUnreachable", text)]},
    }))
}
