//! Texts of users are shown as plain text.

use proptest::prelude::*;
use serde_json::json;

use super::fixtures::{Everything, condition, instance, read, settings, template, tenant, view, warning};
use super::rules::elements;
use crate::api::InstanceSnapshot;
use crate::api::shown::is_control;
use crate::config::Language;
use crate::controllers::dashboard::account::{model::Account, view::account};
use crate::controllers::dashboard::class::tests::view::with_text;
use crate::controllers::dashboard::courses::{model::Courses, view::courses};
use crate::controllers::dashboard::home::{model::Home, view::home};
use crate::controllers::dashboard::machine::{model::Machine, view::machine};
use crate::controllers::dashboard::student::{Known, Student};
use crate::controllers::dashboard::templates::tests::pages as templates;
use crate::controllers::dashboard::ui::state::{State, state};
use crate::controllers::dashboard::ui::view::{Notice, Typed, View};

/// Returns all pages, with a text in each field that a user can write.
fn pages(text: &str) -> Vec<String> {
    let net = ("workspace-net", "desktop");
    let status = json!({"phase": "Failed", "url": text, "ip": text, "initialReadyTime": text,
        "conditions": [condition("Ready", "False", text, text), condition("Reconciled", "False", "ImagePullFailed", text), condition("Inactive", "True", text, text)],
        "environments": [{"name": text, "phase": "Ready", "url": text, "ip": format!("{text} is no host")}],
        "publicExposure": {"externalIP": text, "phase": "Ready", "message": text, "ports": [{"name": text, "port": 1, "targetPort": 2, "protocol": text}]}});
    let mut machine_of = instance("net-1", text, net, true, status);
    machine_of.spec.public_exposure =
        read(json!({"ports": [{"name": text, "port": 0, "targetPort": 2, "protocol": text}]}));
    let mut of_course = super::fixtures::workspace("net", text, "immediate", 9);
    of_course.spec.quota.other_resources = [(text.to_owned(), "1".into())].into();
    let faulty =
        json!({"description": text, "status": {"conditions": [condition("Valid", "False", text, text)]}});
    let mut owner = tenant(&json!([{"name": "net", "role": "user"}, {"name": text, "role": "user"}]), 9);
    owner.spec.first_name = text.to_owned();
    owner.spec.email = text.to_owned();
    // A key cannot contain a line break.
    let comment = text.replace('\n', " ");
    owner.spec.public_keys = vec![text.to_owned(), format!("{} {comment}", super::fixtures::KEY)];
    let snapshot: InstanceSnapshot = read(json!({"metadata": {"name": "s", "namespace": "n"},
        "spec": {"instanceRef": {"name": "net-1"}, "imageName": text}, "status": {"phase": text, "conditions": [condition("Ready", "False", text, text)]}}));
    let mut known = Known::new(
        owner,
        vec![machine_of.clone()],
        vec![template("net", "desktop", text, &json!({})), template("net", "b", text, &faulty)],
        vec![of_course],
        vec![snapshot],
    );
    known.share(super::sharing::machines(text));
    let (settings, all) = (settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    let values = [("key".to_owned(), text.to_owned()), ("prettyName".to_owned(), text.to_owned())];
    let typed = Typed { action: "/account/keys/add", values: &values, wrong: Some(("key", "key")) };
    let notice = Notice::Failed(text.to_owned());
    let view = View {
        user: text,
        help: text,
        notice: Some(&notice),
        search: text,
        typed: Some(typed),
        ..view(Language::ENGLISH, "/account")
    };
    let managers = [text.to_owned()];
    let mut shown = Machine::of(&view, &student, &machine_of, true, Ok(vec![warning(text)]), Some(&managers));
    if let Some(sharing) = &mut shown.sharing {
        sharing.connections = super::sharing::connections(text);
    }
    let pages = [
        home(&view, &Home::of(&view, &student)),
        machine(&view, &shown),
        courses(&view, &Courses::of(&student)),
        account(&view, &Account::of(&view, &student)),
        with_text(text),
        state(&view, &State::Refused(text.to_owned())),
        state(&view, &State::Unconfirmed(text.to_owned())),
        state(&view, &State::IssuerRefused(text.to_owned())),
    ];
    let of_people = super::people::pages(&view, &all, text).into_iter().map(|(_, page)| page);
    let of_templates = templates(&view, &student, &all, text).into_iter().map(|(_, page)| page);
    pages.into_iter().chain(of_people).chain(of_templates).map(maud::PreEscaped::into_string).collect()
}

/// Returns the elements and the names of their attributes, which a text must not change.
fn shape(page: &str) -> Vec<(String, Vec<String>)> {
    let names = |keys: Vec<&str>| keys.into_iter().map(str::to_owned).collect();
    let elements = elements(page).into_iter();
    elements.map(|one| (one.name.to_owned(), names(one.attributes.into_keys().collect()))).collect()
}

/// Returns a page without the values of its fields, which keep the text unchanged.
fn outside_of_fields(page: &str) -> String {
    let mut parts = page.split("value=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    let page = parts.filter_map(|part| part.split_once('"')).fold(first, |page, (_, rest)| page + rest);
    let mut parts = page.split("<textarea");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.filter_map(|part| part.split_once("</textarea>")).fold(first, |page, (_, rest)| page + rest)
}

fn is_linked(page: &str) -> bool {
    elements(page).iter().all(|one| {
        let target = one.of("href");
        target.is_empty()
            || target.starts_with(['/', '#'])
            || target.starts_with("http")
            || target.starts_with("mailto:")
            || one.name == "link"
    })
}

proptest! {
    #![proptest_config(crate::properties::cases(64))]

    #[test]
    fn no_text_becomes_markup(
        before in "[w-z]{1,3}", hostile in r#"(<script>|"|'|&|<|>| onload=x |javascript:x|\u{202e}|\u{1b}|\u{0}|\n|</p>|<!--|\$\{7\*7\}|\{\{x\}\}|é){1,6}"#,
    ) {
        let text = format!("{before}{hostile}");
        // Both texts are the last ones in sorted lists.
        let (plain, shown) = (pages("wharmless"), pages(&text));
        for (plain, shown) in plain.iter().zip(&shown) {
            prop_assert!(shape(plain) == shape(shown), "{:?}", text);
            prop_assert!(is_linked(shown), "{:?}", text);
            let is_bad = |c: char| is_control(c) && c != '\n';
            prop_assert!(!outside_of_fields(shown).contains(is_bad), "{:?}", text);
        }
    }
}

#[test]
fn typed_text_is_shown_again_in_its_field() {
    let values = [("key".to_owned(), "</textarea><script>\"x".to_owned())];
    let typed = Typed { action: "/account/keys/add", values: &values, wrong: None };
    let view = View { typed: Some(typed), ..view(Language::ENGLISH, "/account") };
    let (known, settings, all) = (super::fixtures::known(), settings(), Everything(true));
    let student = Student::new(&known, &settings, &all, None);
    let page = account(&view, &Account::of(&view, &student)).into_string();
    assert!(page.contains(">&lt;/textarea&gt;&lt;script&gt;&quot;x</textarea>"), "{page}");
}
