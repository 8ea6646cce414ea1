//! Tests of the order of machines and Templates, of the options of a new machine, of the search, and of rejected forms.

use serde_json::{Value, json};

use super::fixtures::{Everything, instance, known, read, settings, template, tenant, view, workspace};
use super::rules::elements;
use crate::api::{Instance, Template};
use crate::config::Language;
use crate::controllers::dashboard::account::{model::Account, view::account};
use crate::controllers::dashboard::home::{model::Home, view::home};
use crate::controllers::dashboard::student::{Known, Student};
use crate::controllers::dashboard::ui::view::{Notice, Typed, View};

const NET: (&str, &str) = ("workspace-net", "desktop");

/// Calls `then` with the home page of a student of the course `net`.
fn of_home<T>(instances: Vec<Instance>, templates: Vec<Template>, then: impl Fn(&View<'_>, &Home) -> T) -> T {
    let tenant = tenant(&json!([{"name": "net", "role": "user"}]), 20);
    let known = Known::new(tenant, instances, templates, vec![workspace("net", "Networks", "", 20)], vec![]);
    let (settings, all, view) = (settings(), Everything(true), view(Language::ENGLISH, "/"));
    then(&view, &Home::of(&view, &Student::new(&known, &settings, &all, None)))
}

fn created(name: &str, template: (&str, &str), running: bool, day: u8, status: Value) -> Instance {
    let mut instance = instance(name, name, template, running, status);
    instance.metadata.creation_timestamp = read(json!(format!("2026-11-{day:02}T09:00:00Z")));
    instance
}

#[test]
fn the_newest_machine_comes_first_and_the_last_used_one_first_among_stopped_machines() {
    let on = |name: &str, day| created(name, NET, true, day, json!({"phase": "Ready"}));
    let off = |name: &str, day, used: &str| {
        created(name, NET, false, day, json!({"phase": "Off", "destruction": {"since": used}}))
    };
    let machines = vec![
        off("stale", 25, "2026-11-25T10:00:00Z"),
        on("older", 10),
        off("recent", 1, "2026-11-26T10:00:00Z"),
        on("newest", 24),
    ];
    let names = of_home(machines, vec![], |_, home| {
        home.cards.iter().map(|card| card.name.clone()).collect::<Vec<_>>()
    });
    assert_eq!(names, ["newest", "older", "recent", "stale"]);
}

#[test]
fn templates_of_own_machines_come_first() {
    let templates = ["a", "b", "c", "d"].map(|name| template("net", name, name, &json!({}))).to_vec();
    let of =
        |name: &'static str, day| created(name, ("workspace-net", name), false, day, json!({"phase": "Off"}));
    let names = of_home(vec![of("c", 2), of("d", 3)], templates, |_, home| {
        home.courses[0].offers.iter().map(|offer| offer.name.clone()).collect::<Vec<_>>()
    });
    assert_eq!(names, ["d", "c", "a", "b"]);
}

#[test]
fn only_an_empty_node_selector_leaves_the_nodes_to_the_user() {
    let nodes = |more: Value| {
        of_home(vec![], vec![template("net", "desktop", "", &more)], |_, home| {
            home.courses[0].offers[0].nodes.clone()
        })
    };
    assert_eq!(nodes(json!({})), Vec::<String>::new());
    assert_eq!(nodes(json!({"nodeSelector": {"disk": "slow"}})), Vec::<String>::new());
    assert_eq!(nodes(json!({"nodeSelector": {}})), ["disk=fast", "gpu="]);
}

#[test]
fn the_search_appears_above_ten_templates_and_shows_only_matches() {
    let page = |count: usize, search: &str| {
        let named =
            |number: usize| template("net", &format!("t-{number}"), &format!("Lab {number}"), &json!({}));
        of_home(vec![], (0..count).map(named).collect(), |view, of| {
            let query =
                if search.is_empty() { String::new() } else { format!("q={}", search.replace(' ', "+")) };
            let view = View { search, query: &query, ..*view };
            home(&view, of).into_string()
        })
    };
    assert!(!page(10, "").contains("role=\"search\""));
    let all = page(11, "");
    assert!(
        all.contains("role=\"search\"") && all.contains(">Lab 1<") && all.contains("hx-get=\"/\""),
        "{all}"
    );
    let found = page(11, "lab 10");
    assert!(found.contains(">Lab 10<") && !found.contains(">Lab 9<"), "{found}");
    // A live update keeps the search.
    assert!(found.contains("hx-get=\"/?q=lab+10\"") && found.contains("value=\"lab 10\""), "{found}");
    assert!(!page(11, "databases").contains(">Lab 1<"));
}

#[test]
fn a_rejected_form_has_the_focus_and_names_its_field() {
    let (known, settings, all) = (known(), settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    let values = [("key".to_owned(), "ssh-rsa nonsense".to_owned())];
    let notice = Notice::Failed("Not a key.".to_owned());
    let page = |wrong| {
        let typed = Typed { action: "/account/keys/add", values: &values, wrong };
        let view = View { typed: Some(typed), notice: Some(&notice), ..view(Language::ENGLISH, "/account") };
        account(&view, &Account::of(&view, &student)).into_string()
    };
    let rejected = page(Some(("key", "key")));
    assert!(rejected.contains("<title>Error: Account – Labs of Example</title>"), "{rejected}");
    let all = elements(&rejected);
    let by_id = |id: &str| all.iter().find(|element| element.of("id") == id);
    let field = by_id("key").expect("the field");
    assert_eq!((field.of("aria-invalid"), field.of("aria-describedby")), ("true", "key-error key-hint"));
    assert!(by_id("key-error").is_some() && rejected.contains("href=\"#key\""));
    let alert = all.iter().find(|element| element.of("role") == "alert").expect("the alert");
    assert!(alert.has("autofocus") && alert.of("tabindex") == "-1");
    let other = page(None);
    assert!(!other.contains("aria-invalid") && !other.contains("href=\"#key\""), "{other}");
}

#[test]
fn a_screen_reader_reads_only_the_machine_that_has_changed() {
    let machine = created("net-1", NET, true, 1, json!({"phase": "Ready"}));
    let page = of_home(vec![machine], vec![], |view, of| home(view, of).into_string());
    let all = elements(&page);
    let by_id = |id: &str| all.iter().find(|element| element.of("id") == id).expect("an element");
    assert_eq!((by_id("changes").of("role"), by_id("changes").of("aria-atomic")), ("status", "false"));
    assert_eq!(by_id("said-net-1").of("aria-atomic"), "true");
}
