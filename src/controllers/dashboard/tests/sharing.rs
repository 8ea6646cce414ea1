//! Shared machines, for the rules of all pages, and the tests of their sections.

use maud::Markup;
use serde_json::json;

use super::fixtures::{Everything, NAMESPACE, instance, instances, known, settings, view};
use crate::api::Instance;
use crate::api::connection::{Connection, Relation};
use crate::api::labels::SHARED_WITH;
use crate::api::meta::TextMap;
use crate::api::openings::Way;
use crate::api::sharing::{Access, Peer, written};
use crate::config::Language;
use crate::controllers::dashboard::machine::model::Machine;
use crate::controllers::dashboard::sharing::model::{Door, SharedCard, Sharing};
use crate::controllers::dashboard::sharing::view::{connected, section, with_me as first_page};
use crate::controllers::dashboard::sharing::with_me::SharedMachine;
use crate::controllers::dashboard::student::{Rights, Settings, Student};
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::shared::machine_host::peer_label;
use crate::fixtures::time;
use crate::runtime::ObjectKey;

const TODAY: &str = "2026-11-26T22:59:59Z";

/// Shares a machine with two people.
pub fn share(instance: &mut Instance) {
    let peer = |user: &str, access, until| Peer { user: user.to_owned(), access, until: time(until) };
    let peers = [
        peer("bob.bianchi", Access::Control, TODAY),
        peer("kim", Access::View, "2026-12-24T22:59:59Z"),
        peer("max", Access::View, "2026-11-26T18:00:00Z"),
    ];
    instance.metadata.annotations = TextMap::from_iter([(SHARED_WITH, written(&peers))]);
}

/// Returns the connections of people with this name to a machine.
pub fn connections(user: &str) -> Vec<Connection> {
    let entry = json!({"namespace": NAMESPACE, "name": "net-1", "environment": "desktop", "user": user, "as": "peer",
        "way": "terminal", "since": "2026-11-26T17:05:00Z", "seen": "2026-11-26T18:05:00Z"});
    let peer = Connection::read(&entry.to_string()).expect("an entry");
    let manager = Connection { relation: Relation::Manager, way: Way::Web, ..peer.clone() };
    let administrator = Connection { relation: Relation::Administrator, ..peer.clone() };
    vec![peer, manager, administrator]
}

/// Returns machines that are shared with the student: of each course, and of an unknown Template. `owner` is the name of
/// their owner.
pub fn machines(owner: &str) -> Vec<SharedMachine> {
    let machine = |name: &str, course: &str, template: &str, access| SharedMachine {
        key: ObjectKey::new("tenant-bob", name),
        uid: format!("uid-{name}"),
        owner: owner.to_owned(),
        course: course.to_owned(),
        template: template.to_owned(),
        access,
        until: time(TODAY),
    };
    vec![
        machine("lab", "net", "large", Access::Control),
        machine("one", "net", "desktop", Access::View),
        machine("box", "data", "sql", Access::Control),
        machine("gone", "net", "gone", Access::Control),
    ]
}

fn student_of<T>(
    rights: &dyn Rights,
    settings: &Settings,
    of: impl FnOnce(&Student<'_>, &View<'_>) -> T,
) -> T {
    let mut known = known();
    known.share(machines("bob"));
    of(&Student::new(&known, settings, rights, None), &view(Language::ENGLISH, "/"))
}

/// Returns the section of a machine.
fn sharing_of(instance: &Instance, rights: &dyn Rights) -> Option<Sharing> {
    student_of(rights, &settings(), |student, view| {
        Machine::of(view, student, instance, false, Ok(vec![]), None).sharing
    })
}

fn html(markup: Markup) -> String {
    markup.into_string()
}

#[test]
fn the_owner_sees_the_people_of_now_and_can_end_each_share() {
    let mut machine = instances().remove(0);
    share(&mut machine);
    let sharing = sharing_of(&machine, &Everything(true)).expect("a section");
    let names: Vec<&str> = sharing.peers.iter().map(|peer| peer.user.as_str()).collect();
    assert_eq!((names, sharing.is_offered), (vec!["bob.bianchi", "kim"], true), "the time of max is over");
    let page = html(section(&view(Language::ENGLISH, "/"), &sharing));
    for words in [
        "Thursday 26 November 2026, 23:59 CET",
        "action=\"/machines/tenant-ada-rossi/net-1/unshare\"",
        "action=\"/machines/tenant-ada-rossi/net-1/share\"",
        "name=\"zone\" value=\"Europe/Rome\"",
        "<option value=\"today\" selected>At the end of today</option>",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let sharing = sharing_of(&machine, &Everything(false)).expect("a section");
    assert!(!html(section(&view(Language::ENGLISH, "/"), &sharing)).contains("<form"), "without the right");
}

#[test]
fn a_machine_is_shared_only_by_its_owner_and_only_in_a_course() {
    let own = instances().remove(0);
    assert!(sharing_of(&own, &Everything(true)).is_some_and(|sharing| sharing.is_shown()));
    let mut other = own.clone();
    other.metadata.namespace = "tenant-bob".into();
    assert!(sharing_of(&other, &Everything(true)).is_none(), "a manager sees no section");
    let of_none = instance("x", "X", ("workspace-net", "gone"), true, json!({"phase": "Ready"}));
    let sharing = sharing_of(&of_none, &Everything(true)).expect("a section");
    assert!(!sharing.is_shown(), "its course is not known");
}

#[test]
fn the_owner_sees_who_is_connected() {
    let page = html(connected(&view(Language::ENGLISH, "/"), &connections("bob")));
    for words in [
        "bob is connected</strong> (terminal,",
        "A teacher of the course is connected: bob</strong> (desktop,",
        "An administrator is connected: bob</strong> (terminal,",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

#[test]
fn a_peer_gets_the_terminals_and_with_control_the_desktops_of_the_template() {
    let doors = |settings: &Settings| {
        student_of(&Everything(true), settings, |student, _| {
            SharedCard::all(student).into_iter().map(|card| (card.title, card.doors)).collect::<Vec<_>>()
        })
    };
    let path =
        |name: &str, environment: &str| Some(format!("/machines/tenant-bob/{name}/{environment}/terminal"));
    let found = doors(&settings());
    let of = |name: &str| found.iter().find(|(title, _)| title == name).map(|(_, doors)| doors.as_slice());
    let one = Door { environment: String::new(), terminal: path("one", "desktop"), desktop: None };
    assert_eq!(of("Network desktop"), Some(&[one][..]), "a machine to look on has no desktop");
    let label = peer_label("uid-lab", "part-1", "ada.rossi");
    let part = Door {
        environment: "part-1".to_owned(),
        terminal: path("lab", "part-1"),
        desktop: Some(format!("https://{label}.machines.example.org:8443/")),
    };
    assert_eq!(of("Three routers").and_then(|doors| doors.get(1)), Some(&part));
    let sql: Vec<[bool; 2]> = of("SQL and desktop").expect("a machine").iter().map(has).collect();
    assert_eq!(sql, [[true, true], [false, true]], "a container has no terminal");
    assert_eq!(of("gone"), Some(&[][..]), "its Template is not known");
    let without = Settings { web_ssh: String::new(), peer_desktops: String::new(), ..settings() };
    assert!(doors(&without).iter().all(|(_, doors)| doors.is_empty()));
}

/// Whether there are a terminal and a desktop.
fn has(door: &Door) -> [bool; 2] {
    [door.terminal.is_some(), door.desktop.is_some()]
}

#[test]
fn the_first_page_names_the_owner_the_right_and_the_end() {
    let page = student_of(&Everything(true), &settings(), |student, view| {
        html(first_page(view, &SharedCard::all(student)))
    });
    for words in [
        "Shared with me",
        "Owner: bob",
        "You can look on in the terminal. Until: Thursday 26 November 2026, 23:59 CET.",
        "You can work on it.",
        "It cannot be opened here. Ask its owner.",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(html(first_page(&view(Language::ENGLISH, "/"), &[])).is_empty());
}
