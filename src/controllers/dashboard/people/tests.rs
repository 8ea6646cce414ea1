//! Tests of the pages about people.

use serde_json::{Value, json};

use super::import::view::form;
use super::model::{OfPerson, People, ROWS, Row};
use super::person_view::person;
use super::view::people;
use crate::api::tenant::Role;
use crate::api::{Template, Tenant};
use crate::config::Language;
use crate::controllers::dashboard::course::Course;
use crate::controllers::dashboard::history::model::History;
use crate::controllers::dashboard::machine::left::Left;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::tests::fixtures::{NAMESPACE, condition, instance, read, template, view};
use crate::controllers::dashboard::tests::people::course;
use crate::controllers::dashboard::texts::Problem;
use crate::controllers::dashboard::ui::view::{Notice, Typed, View};

/// A Tenant with a name and entries, such as `net:user`.
fn tenant(user: &str, names: (&str, &str), entries: &[&str]) -> Tenant {
    let entries = entries.iter().filter_map(|entry| entry.split_once(':'));
    let entries: Vec<Value> = entries.map(|(name, role)| json!({"name": name, "role": role})).collect();
    read(json!({
        "metadata": {"name": user, "uid": format!("uid-of-{user}"), "resourceVersion": "1"},
        "spec": {"firstName": names.0, "lastName": names.1, "email": format!("{user}@example.org"), "workspaces": entries},
    }))
}

fn of(tenants: &[Tenant], search: &str, page: usize) -> People {
    People::of(tenants, "net", "carlo.verdi", search, page, true)
}

fn users(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| row.user.as_str()).collect()
}

#[test]
fn people_of_the_course_are_sorted_by_role_and_last_name() {
    let tenants = [
        tenant("zoe", ("Zoe", "abate"), &["net:user"]),
        tenant("bob", ("Bob", "Bianchi"), &["os:user", "net:user"]),
        tenant("carlo.verdi", ("Carlo", "Verdi"), &["net:manager"]),
        tenant("eva", ("Eva", "Neri"), &["net:candidate"]),
        // The label of a role may be older than the spec.
        tenant("gone", ("Gino", "Gallo"), &["os:user"]),
        tenant("odd", ("", ""), &["net:observer"]),
    ];
    let found = of(&tenants, "", 1);
    assert_eq!(users(&found.enrolled), ["carlo.verdi", "odd", "zoe", "bob"]);
    assert_eq!((users(&found.candidates), found.asking), (vec!["eva"], 1));
    let [carlo, odd, ..] = &found.enrolled[..] else { panic!("{found:?}") };
    assert!(carlo.is_own && !odd.is_own);
    assert_eq!((odd.name.as_str(), &odd.role), ("odd", &Some(Role::Other("observer".into()))));
}

#[test]
fn a_search_finds_people_by_all_of_its_words() {
    let tenants = [
        tenant("bob", ("Bob", "Bianchi"), &["net:user"]),
        tenant("eva", ("Eva", "Bianchi"), &["net:candidate"]),
        tenant("zoe", ("Zoe", "Abate"), &["net:user"]),
    ];
    for (search, enrolled, candidates) in [
        ("bianchi", vec!["bob"], vec!["eva"]),
        ("BOB example.org", vec!["bob"], vec![]),
        ("zoe bianchi", vec![], vec![]),
    ] {
        let found = of(&tenants, search, 1);
        assert_eq!((users(&found.enrolled), users(&found.candidates)), (enrolled, candidates), "{search}");
    }
}

#[test]
fn a_page_has_a_hundred_people() {
    let user =
        |number: usize| tenant(&format!("u{number:03}"), ("U", &format!("{number:03}")), &["net:user"]);
    let tenants: Vec<Tenant> = (0..250).map(user).collect();
    for (page, number, first, rows) in
        [(0, 1, "u000", ROWS), (2, 2, "u100", ROWS), (3, 3, "u200", 50), (9, 3, "u200", 50)]
    {
        let found = of(&tenants, "", page);
        assert_eq!((found.page, found.pages, found.found), (number, 3, 250));
        assert_eq!((found.enrolled[0].user.as_str(), found.enrolled.len()), (first, rows), "{page}");
    }
    assert_eq!((of(&[], "", 1).pages, of(&[], "", 1).found), (1, 0));
}

/// Returns the page of a course with these people, for a user who may change them.
fn page(tenants: &[Tenant], search: &str, number: usize) -> String {
    let of_view = View { search, ..view(Language::ENGLISH, "/courses/net/people") };
    people(&of_view, &course(), &of(tenants, search, number)).into_string()
}

#[test]
fn a_candidate_can_be_approved_and_all_of_them_by_a_list() {
    let candidates: Vec<Tenant> =
        ["eva", "leo"].map(|user| tenant(user, ("A", "B"), &["net:candidate"])).to_vec();
    let shown = page(&candidates, "", 1);
    let form = "<form method=\"post\" action=\"/courses/net/people/approve\">\
        <input type=\"hidden\" name=\"uid\" value=\"uid-of-eva\"><input type=\"hidden\" name=\"who\" value=\"eva\">";
    assert!(shown.contains(form), "{shown}");
    let list = |role: &str| {
        format!(
            "<form method=\"post\" action=\"/courses/net/people/import\">\
            <input type=\"hidden\" name=\"list\" value=\"user,role\neva,{role}\nleo,{role}\n\">"
        )
    };
    assert!(shown.contains(&list("user")) && shown.contains(&list("reject")), "{shown}");
    assert!(!page(&candidates[..1], "", 1).contains("name=\"list\""), "one candidate has buttons");
}

#[test]
fn the_pages_of_many_people_keep_the_search() {
    let user = |number: usize| tenant(&format!("u{number}"), ("A&B", "C"), &["net:user"]);
    let tenants: Vec<Tenant> = (0..201).map(user).collect();
    let shown = page(&tenants, "a&b", 2);
    for number in [1, 3] {
        assert!(
            shown.contains(&format!("href=\"/courses/net/people?q=a%26b&amp;page={number}\"")),
            "{shown}"
        );
    }
    assert!(shown.contains("Page 2 of 3"), "{shown}");
}

#[test]
fn a_user_without_the_right_sees_people_and_no_forms() {
    let tenants = [
        tenant("bob", ("Bob", "Bianchi"), &["net:user"]),
        tenant("eva", ("Eva", "Neri"), &["net:candidate"]),
        tenant("leo", ("Leo", "Riva"), &["net:candidate"]),
    ];
    let without = People::of(&tenants, "net", "carlo.verdi", "", 1, false);
    let shown = people(&view(Language::ENGLISH, "/courses/net/people"), &course(), &without).into_string();
    assert!(shown.contains("Bob Bianchi") && shown.contains("eva@example.org"), "{shown}");
    assert!(!shown.contains("action=\"/courses"), "{shown}");
}

#[test]
fn a_rejected_form_shows_its_problem_beside_the_field() {
    let values = [("user", "bob"), ("first", "<b>")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let wrong = Problem::PersonNoEmail.field();
    let typed = Typed { action: "/courses/net/people/add", values: &values, wrong };
    let failed = Notice::Failed("An address is needed.".to_owned());
    let of_view =
        View { typed: Some(typed), notice: Some(&failed), ..view(Language::ENGLISH, "/courses/net/people") };
    let shown = people(&of_view, &course(), &of(&[], "", 1)).into_string();
    for part in [
        "<p class=\"error\" id=\"person-email-error\">An address is needed.</p>",
        "<a href=\"#person-email\">",
        "name=\"first\" value=\"&lt;b&gt;\"",
        "<option value=\"manager\">Teacher</option>",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// Returns the machines of Ada in the course `net`, with one of another course.
fn of_ada(role: &str, course: &Course) -> OfPerson {
    let net = ("workspace-net", "desktop");
    let deadline = json!({"phase": "Off", "destruction": {"since": "2026-11-01T00:00:00Z", "deadline": "2026-11-27T06:00:00Z"},
        "conditions": [condition("Ready", "True", "Off", "The Instance is off")]});
    let machines = [
        instance("net-1", "Routing", net, true, json!({"phase": "Ready"})),
        instance("net-2", "Firewall", net, false, deadline),
        instance("sql", "Databases", ("workspace-data", "sql"), true, json!({"phase": "Ready"})),
    ];
    let templates: Vec<Template> = vec![template("net", "desktop", "Network desktop", &json!({}))];
    let ada = tenant("ada.rossi", ("Ada", "Rossi"), &[role]);
    let row = Row::of(&ada, "net", "carlo.verdi");
    assert_eq!(machines[0].namespace(), NAMESPACE);
    OfPerson::of(row, Some(&machines), &templates, &course.namespace, true)
}

fn page_of(course: &Course, of: &OfPerson) -> String {
    let view = view(Language::ENGLISH, "/courses/net/person/ada.rossi");
    person(&view, course, of, &History::default()).into_string()
}

#[test]
fn the_page_of_a_person_lists_the_machines_of_the_course_with_their_deadlines() {
    let course = course();
    let ada = of_ada("net:user", &course);
    let machines = ada.machines.as_deref().expect("machines");
    let seen: Vec<_> = machines.iter().map(|of| (of.title.as_str(), of.standing)).collect();
    assert_eq!(seen, [("Routing", Standing::Ready), ("Firewall", Standing::Off)]);
    assert!(matches!(machines[0].left, Some(Left::Limit(_))), "{machines:?}");
    assert!(matches!(machines[1].left, Some(Left::Step(_))), "{machines:?}");
    let shown = page_of(&course, &ada);
    for part in [
        "href=\"/machines/tenant-ada-rossi/net-2\"",
        "Will be deleted",
        "these machines remain until their deadlines",
        "action=\"/courses/net/people/remove\"",
        "action=\"/courses/net/people/promote\"",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("Databases") && !shown.contains("people/demote"), "{shown}");
}

#[test]
fn the_actions_on_a_person_depend_on_the_role() {
    let course = course();
    for (role, offered) in [
        ("net:candidate", &["approve", "reject"][..]),
        ("net:user", &["promote", "remove"]),
        ("net:manager", &["demote", "remove"]),
        ("net:observer", &[]),
        ("os:user", &[]),
    ] {
        let shown = page_of(&course, &of_ada(role, &course));
        for action in ["approve", "reject", "promote", "demote", "remove"] {
            let is_offered = shown.contains(&format!("action=\"/courses/net/people/{action}\""));
            assert_eq!(is_offered, offered.contains(&action), "{role}: {action}");
        }
    }
    let mut own = of_ada("net:manager", &course);
    own.row.is_own = true;
    let shown = page_of(&course, &own);
    assert!(!shown.contains("/people/demote") && !shown.contains("/people/remove"), "{shown}");
    let hidden = OfPerson { machines: None, ..of_ada("net:user", &course) };
    let shown = page_of(&course, &hidden);
    assert!(shown.contains("not allowed to see the machines"), "{shown}");
}

#[test]
fn a_list_with_a_fault_is_shown_again_with_its_problem() {
    let fault = (Problem::ListColumns, "<matricola>".to_owned());
    let of_view = view(Language::ENGLISH, "/courses/net/people/import");
    let shown = form(&of_view, &course(), "user,<matricola>", Some(&fault)).into_string();
    assert!(shown.contains(">user,&lt;matricola&gt;</textarea>"), "{shown}");
    assert!(
        shown.contains("each at most once. This one is unknown or there twice: &lt;matricola&gt;"),
        "{shown}"
    );
    assert!(shown.contains("aria-invalid=\"true\"") && shown.contains("id=\"list-error\""), "{shown}");
}
