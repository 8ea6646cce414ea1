//! Tests of the pages of an action on a class.

use maud::Markup;
use serde_json::json;

use super::model::{Asked, Chosen, Found};
use super::view::page;
use super::words::csv;
use crate::api::Template;
use crate::api::denial::{Cause, DenialReason};
use crate::class::model::{ActionId, Change, Refusal, Row, State, Unchanged, Verb};
use crate::config::Language;
use crate::controllers::dashboard::class::tests::fixtures::seen;
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::tests::fixtures::{now, template, view};
use crate::controllers::dashboard::texts::texts;
use crate::controllers::dashboard::ui::state::State as Page;
use crate::runtime::ObjectKey;
use crate::runtime::error::ApiError;

fn id() -> ActionId {
    ActionId::parse(&format!("abcdefghij234567-{}", now().as_second())).expect("an identifier")
}

fn asked(verb: &str, query: &str) -> Result<Asked, Page> {
    Asked::of("tea", verb, &Fields::parse(query.as_bytes()), texts(Language::ENGLISH))
}

fn row(person: &str, state: State) -> Row {
    let machine = Some(ObjectKey::new(format!("tenant-{person}"), "vm"));
    Row { person: person.to_owned(), title: format!("<b>{person}</b>"), machine, state }
}

fn to_do() -> State {
    State::ToDo(Change::Delete(ObjectKey::new("tenant-ada", "vm"), "u1".to_owned()))
}

fn denied(reason: DenialReason, value: &str) -> State {
    let causes = vec![Cause::new(reason, value)];
    State::Refused(Refusal::Api(ApiError::Denied { message: "no".to_owned(), causes }))
}

fn found(rows: Vec<Row>, chosen: Chosen<Template>) -> Found {
    let to_do = rows.iter().filter(|row| matches!(row.state, State::ToDo(_))).count();
    let templates = vec![template("tea", "desktop", "Tea desktop", &json!({}))];
    Found { course: seen(&[]).course, templates, chosen, id: id(), rows, to_do }
}

/// Returns the question and the progress of an action with rows in all states, for the tests of all pages.
pub fn samples(language: Language) -> Vec<(String, Markup)> {
    let rows = vec![
        row("ada", State::Done),
        row("bob", to_do()),
        row("eve", State::Running),
        row("kim", State::Unchanged(Unchanged::Later)),
        row("zoe", denied(DenialReason::QuotaExceeded, "CPU (9 > 8)")),
    ];
    let id = id();
    let pages = [
        ("class-question", "delete", String::new(), found(rows.clone(), Chosen::All)),
        ("class-progress", "collect", format!("id={id}&todo=9"), found(rows, Chosen::All)),
        ("class-template", "start", String::new(), found(Vec::new(), Chosen::Open)),
    ];
    let of = |(name, verb, query, found): (&str, &str, String, Found)| {
        let asked = asked(verb, &query).expect("a page");
        (name.to_owned(), page(&view(language, "/courses/tea/actions/x"), &asked, &found))
    };
    pages.map(of).into()
}

/// Returns the page of an action, in English.
fn html(query: &str, verb: &str, found: &Found) -> String {
    let asked = asked(verb, query).expect("a page");
    page(&view(Language::ENGLISH, "/courses/tea/actions/x"), &asked, found).into_string()
}

#[test]
fn the_path_has_the_selection_and_the_identifier() {
    let id = id();
    for query in
        ["", "template=desktop", &format!("id={id}&template=desktop&who=ada&who=bob.x&todo=3"), "who=ada"]
    {
        let asked = asked("stop", query).expect("a page");
        let path = "/courses/tea/actions/stop";
        let expected = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
        assert_eq!(asked.path(), expected);
        assert_eq!(asked.csv().replace("/result.csv", ""), expected);
    }
}

#[test]
fn an_invalid_selection_is_not_the_whole_class() {
    for (verb, query) in [("stop", "who=.."), ("stop", "who="), ("stop", "id=x"), ("restart", "")] {
        assert_eq!(asked(verb, query), Err(Page::NotFound), "{verb} {query}");
    }
    let many: Vec<String> = (0..500).map(|number| format!("who=student-{number:04}")).collect();
    assert!(matches!(asked("stop", &many.join("&")), Err(Page::Refused(_))));
}

#[test]
fn a_start_needs_one_template_and_the_other_actions_need_none() {
    let [desktop, server] = ["desktop", "server"].map(|name| template("tea", name, "", &json!({})));
    let (one, two) = ([desktop.clone()], [desktop.clone(), server]);
    for (verb, query, templates, expected) in [
        ("start", "", &one[..], Some(Chosen::One(&desktop))),
        ("start", "", &two, Some(Chosen::Open)),
        ("start", "", &[], Some(Chosen::Open)),
        ("start", "template=desktop", &two, Some(Chosen::One(&desktop))),
        ("start", "template=gone", &two, None),
        ("stop", "", &one, Some(Chosen::All)),
        ("delete", "template=desktop", &two, Some(Chosen::One(&desktop))),
        ("collect", "template=gone", &two, None),
    ] {
        let found = asked(verb, query).expect("a page").template_of(templates);
        assert_eq!(found.ok(), expected, "{verb} {query}");
    }
}

#[test]
fn the_question_names_the_numbers_and_its_form_has_the_selection() {
    let rows = vec![
        row("ada", to_do()),
        row("bob", to_do()),
        row("eve", State::Unchanged(Unchanged::Already)),
        row("zoe", denied(DenialReason::QuotaExceeded, "CPU (9 > 8)")),
    ];
    let page = html("who=ada&who=bob&who=eve&who=zoe", "stop", &found(rows, Chosen::All));
    for part in [
        "2 machines will be stopped.".to_owned(),
        "4 selected students".to_owned(),
        "Stop 2 machines".to_owned(),
        "Unchanged</span> 1".to_owned(),
        "Refused</span> 1".to_owned(),
        "The quota of the student is not enough: CPU (9 &gt; 8).".to_owned(),
        format!("<input type=\"hidden\" name=\"id\" value=\"{}\">", id()),
        "<input type=\"hidden\" name=\"who\" value=\"eve\">".to_owned(),
        "&lt;b&gt;zoe&lt;/b&gt;".to_owned(),
    ] {
        assert!(page.contains(&part), "{part}: {page}");
    }
    assert!(
        !page.contains("<b>zoe") && !page.contains("&lt;b&gt;ada"),
        "only refused rows are listed: {page}"
    );
    let nothing = html("", "stop", &found(vec![row("ada", State::Done)], Chosen::All));
    assert!(nothing.contains("There is nothing to do.") && !nothing.contains("data-again"), "{nothing}");
    let open = html("", "start", &found(Vec::new(), Chosen::Open));
    assert!(open.contains("<option value=\"desktop\">Tea desktop</option>"), "{open}");
}

#[test]
fn the_progress_lists_the_refused_rows_first_and_offers_to_go_on() {
    let id = id();
    let rows = || {
        vec![
            row("ada", State::Done),
            row("bob", to_do()),
            row("eve", State::Refused(Refusal::NotUploaded("500".to_owned()))),
        ]
    };
    let page = html(&format!("id={id}"), "collect", &found(rows(), Chosen::All));
    let places = ["eve", "bob", "ada"].map(|name| page.find(&format!("&lt;b&gt;{name}")));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
    for part in [
        "Continue with 1 change",
        "Try 1 refused change again",
        "The upload has failed: 500",
        "result.csv?id=",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // The script continues only if the last form has made some of the changes.
    for (before, is_automatic) in [("2", true), ("1", false), ("", false)] {
        let page = html(&format!("id={id}&todo={before}"), "collect", &found(rows(), Chosen::All));
        assert_eq!(page.contains("data-automatic"), is_automatic, "{before}");
    }
    // An old page does not act by itself, and a page of the day before not at all.
    for (minutes, is_open) in [(4, true), (25 * 60, false)] {
        let seconds = now().as_second() - minutes * 60;
        let id = ActionId::parse(&format!("abcdefghij234567-{seconds}")).expect("an identifier");
        let found = Found { id: id.clone(), ..found(rows(), Chosen::All) };
        let page = html(&format!("id={id}&todo=2"), "collect", &found);
        assert!(!page.contains("data-automatic"), "{minutes}");
        assert_eq!(page.contains("Continue with 1 change"), is_open, "{minutes}");
    }
}

#[test]
fn the_table_for_spreadsheets_has_a_row_for_each_student() {
    let rows = [row("ada", State::Done), row("bob", denied(DenialReason::Full, "3"))];
    let text = csv(texts(Language::ENGLISH), Verb::Start, &rows);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "\u{feff}user,name,machine,state,reason",
            "ada,<b>ada</b>,tenant-ada/vm,Started,",
            "bob,<b>bob</b>,tenant-bob/vm,Refused,The quota of the student is not enough: 3.",
        ]
    );
}
