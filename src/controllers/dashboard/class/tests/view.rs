//! Tests of the HTML.

use std::sync::Arc;

use maud::Markup;
use serde_json::json;

use super::fixtures::{machine, person, seen};
use crate::config::Language;
use crate::controllers::dashboard::class::filter::Filter;
use crate::controllers::dashboard::class::memory::{Seen, Unread};
use crate::controllers::dashboard::class::model::Table;
use crate::controllers::dashboard::class::objects::Member;
use crate::controllers::dashboard::class::view::class;
use crate::controllers::dashboard::history::model::History;
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::tests::fixtures::{condition, now, read, view, workspace};
use crate::controllers::dashboard::tests::rules::{Element, elements};
use crate::controllers::dashboard::ui::view::View;
use crate::runtime::client::Rules;

/// Returns the pages of a class in a language, for the tests of all pages.
pub fn pages(language: Language) -> Vec<(String, Markup)> {
    let machines = [
        machine("ada", "a", "Failed"),
        machine("ada", "b", "Ready"),
        machine("bob", "b", "Starting"),
        machine("eve", "e", "Off"),
    ];
    let (mut partial, mut empty) = (seen(&machines), seen(&[]));
    partial.class.unread = [("tenant-zoe".into(), Unread::NotYet)].into();
    empty.class.people.clear();
    let filter = Filter::default();
    let of_class = view(language, "/courses/tea");
    let old = View { old: Some(now()), ..of_class };
    let all = [("", of_class, &partial), ("-old", old, &partial), ("-empty", of_class, &empty)];
    let rendered = all.map(|(name, view, seen)| {
        (format!("class{name}"), class(&view, seen, &Table::of(seen, &filter), &filter, &History::default()))
    });
    rendered.into()
}

/// Returns the page of a class with a text in each field that a user can write.
pub fn with_text(text: &str) -> Markup {
    let mut of_student = machine("ada", "a", "Failed");
    of_student["spec"]["prettyName"] = json!(text);
    of_student["status"]["conditions"] = json!([condition("Ready", "False", text, text)]);
    let mut class_of = seen(&[of_student, machine("bob", "b", "Ready")]);
    class_of.class.join(read(person("ada", text, text, "user")));
    class_of.templates[0].spec.pretty_name = text.to_owned();
    class_of.course.workspace = Arc::new(workspace("tea", text, "", 3));
    let filter = Filter::default();
    let view = View { user: text, ..view(Language::ENGLISH, "/courses/tea") };
    class(&view, &class_of, &Table::of(&class_of, &filter), &filter, &History::default())
}

/// Renders the page of a class with a query.
fn page(seen: &Seen, query: &str) -> String {
    let filter = Filter::of(&Fields::parse(query.as_bytes()));
    let view = View { query, ..view(Language::ENGLISH, "/courses/tea") };
    class(&view, seen, &Table::of(seen, &filter), &filter, &History::default()).into_string()
}

fn of(page: &str, is_wanted: impl Fn(&Element<'_>) -> bool) -> Vec<Element<'_>> {
    elements(page).into_iter().filter(is_wanted).collect()
}

#[test]
fn each_student_has_a_row_with_a_box_and_the_link_to_the_machine() {
    let page = page(&seen(&[machine("ada", "a", "Failed"), machine("ada", "b", "Ready")]), "");
    let ids: Vec<&str> =
        of(&page, |one| one.name == "tr" && one.has("id")).iter().map(|one| one.attributes["id"]).collect();
    assert_eq!(ids, ["row-bob", "row-zoe", "row-ada", "row-eve"]);
    let boxes = of(&page, |one| one.of("name") == "who");
    let values: Vec<&str> = boxes.iter().map(|one| one.attributes["value"]).collect();
    assert_eq!(values, ["bob", "zoe", "ada", "eve"]);
    assert!(page.contains("href=\"/machines/tenant-ada/a\"") && page.contains("1 more machine"), "{page}");
    assert!(page.contains("<label for=\"who-ada\">Rossi Ada</label>"), "{page}");
    assert!(page.contains("2 cores, 4 GiB of memory, 20 GiB of disk"), "{page}");
    assert!(page.contains("Will be stopped <time"), "{page}");
}

#[test]
fn links_keep_the_rest_of_the_query() {
    let all = seen(&[machine("ada", "a", "Failed")]);
    let page = page(&all, "q=o&template=desktop&sort=-used&page=1");
    let links: Vec<String> =
        of(&page, |one| one.name == "a").iter().map(|one| one.of("href").to_owned()).collect();
    for link in [
        "/courses/tea?q=o&amp;state=failed&amp;template=desktop&amp;sort=-used",
        "/courses/tea?q=o&amp;template=desktop&amp;sort=used",
        "/courses/tea?q=o&amp;template=desktop&amp;sort=state",
        "/courses/tea/class.csv?q=o&amp;template=desktop&amp;sort=-used",
        "/courses/tea?sort=-used",
    ] {
        assert!(links.iter().any(|found| found == link), "{link} {links:?}");
    }
    assert!(page.contains("hx-get=\"/courses/tea?q=o&amp;template=desktop&amp;sort=-used&amp;page=1\""));
    let sorted = of(&page, |one| one.has("aria-sort"));
    assert_eq!(sorted.iter().map(|one| one.of("aria-sort")).collect::<Vec<_>>(), ["descending"]);
}

#[test]
fn actions_are_offered_to_users_with_the_right_while_the_api_server_responds() {
    let offered = |seen: &Seen, is_old: bool| {
        let view = View { old: is_old.then(now), ..view(Language::ENGLISH, "/courses/tea") };
        let filter = Filter::default();
        let page = class(&view, seen, &Table::of(seen, &filter), &filter, &History::default()).into_string();
        let buttons = of(&page, |one| one.has("formaction"));
        assert_eq!(buttons.is_empty(), !page.contains("name=\"who\""), "boxes without an action are useless");
        buttons.iter().map(|one| one.of("formaction").to_owned()).collect::<Vec<_>>()
    };
    let mut seen = seen(&[]);
    let all = ["start", "stop", "collect", "delete"].map(|verb| format!("/courses/tea/actions/{verb}"));
    assert_eq!(offered(&seen, false), all);
    assert_eq!(offered(&seen, true), Vec::<String>::new());
    let rules = |verbs: &[&str]| {
        let rule = json!({"verbs": verbs, "apiGroups": ["crownlabs.polito.it"], "resources": ["instances"]});
        Arc::new(read::<Rules>(json!({"resourceRules": [rule]})))
    };
    seen.course.rules.rules = rules(&["delete"]);
    assert_eq!(offered(&seen, false), all[3..]);
    seen.course.rules.rules = rules(&["list"]);
    assert_eq!(offered(&seen, false), Vec::<String>::new());
    // The rules are those of the namespace of the course.
    seen.class.is_wide = false;
    assert_eq!(offered(&seen, false), all);
}

#[test]
fn an_incomplete_class_says_so() {
    let mut seen = seen(&[]);
    let complete = page(&seen, "");
    assert!(!complete.contains("not complete"), "{complete}");
    seen.class.unread =
        [("tenant-ada".into(), Unread::NotYet), ("tenant-eve".into(), Unread::TooMany)].into();
    let page = page(&seen, "");
    assert!(page.contains("the machines of 1 student are not read yet"), "{page}");
    assert!(page.contains("This student has too many machines to show."), "{page}");
}

#[test]
fn an_empty_class_and_a_search_without_a_match_differ() {
    let mut all = seen(&[]);
    assert!(page(&all, "q=nobody").contains("No student matches."));
    all.class.people.clear();
    let empty = page(&all, "");
    assert!(
        empty.contains("No students are enrolled in this course.") && !empty.contains("<table"),
        "{empty}"
    );
}

#[test]
fn a_class_of_a_hundred_fits_on_a_page_and_a_larger_one_has_more() {
    let mut class = seen(&[]);
    class.class.people.clear();
    for number in 0..150 {
        class.class.join(read::<Member>(person(&format!("s{number:03}"), "Some", "Body", "user")));
    }
    let first = page(&class, "");
    assert!(first.contains("1 to 100 of 150") && first.contains("/courses/tea?page=2"), "{first}");
    let second = page(&class, "page=2");
    assert!(second.contains("101 to 150 of 150") && second.contains(">Previous</a>"), "{second}");
    assert!(!second.contains(">Next</a>"));
    class.class.people = class.class.people.into_iter().take(100).collect();
    assert!(!page(&class, "").contains("1 to 100"));
}
