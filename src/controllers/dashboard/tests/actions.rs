//! The pages offer actions as their entries say.

use std::collections::BTreeSet;

use serde_json::json;

use super::fixtures::{Everything, instances, known, read, settings, view};
use super::rules::elements;
use crate::config::Language;
use crate::controllers::dashboard::account::{model::Account, view::account};
use crate::controllers::dashboard::action::entry::{Place, Right};
use crate::controllers::dashboard::courses::{model::Courses, view::courses};
use crate::controllers::dashboard::files::{model::Files, view::files};
use crate::controllers::dashboard::home::{model::Home, view::home};
use crate::controllers::dashboard::machine::actions::ACTIONS;
use crate::controllers::dashboard::machine::{model::Machine, view::machine};
use crate::controllers::dashboard::router::actions;
use crate::controllers::dashboard::student::{Rights, Settings, Student};
use crate::controllers::dashboard::templates::tests::pages as templates;
use crate::controllers::dashboard::texts::texts;

/// The rights of a user who may do everything except this.
struct AllExcept(Right);

impl Rights for AllExcept {
    fn may(&self, _: &str, right: &Right) -> bool {
        *right != self.0
    }
}

/// Returns the pages of a user with these rights, one after the other. Together, they offer every action.
fn pages(language: Language, rights: &dyn Rights) -> String {
    let known = known();
    // Without the rule of the webhook, the user can create every machine.
    let settings = Settings { is_rule_enforced: false, ..settings() };
    let student = Student::new(&known, &settings, rights, None);
    let view = view(language, "/");
    let mut pages = vec![
        home(&view, &Home::of(&view, &student)),
        courses(&view, &Courses::of(&student)),
        account(&view, &Account::of(&view, &student)),
        files(&view, &Files::of(&view, &student)),
    ];
    pages.extend(templates(&view, &student, rights, "Lab").into_iter().map(|(_, page)| page));
    pages.extend(super::people::pages(&view, rights, "Bob").into_iter().map(|(_, page)| page));
    pages.extend(super::collected::pages(&view, rights, "Bob").into_iter().map(|(_, page)| page));
    pages.extend(super::admin::pages(&view, rights, "Bob").into_iter().map(|(_, page)| page));
    for mut instance in instances() {
        super::sharing::share(&mut instance);
        let port = json!({"name": "web", "port": 0, "targetPort": 80, "protocol": "TCP"});
        instance.spec.public_exposure = read(json!({"ports": [port]}));
        let of_instance = Machine::of(&view, &student, &instance, false, Ok(vec![]), None);
        pages.push(machine(&view, &of_instance));
    }
    pages.into_iter().map(maud::PreEscaped::into_string).collect()
}

/// Whether a pattern of the router matches a path.
fn matches(pattern: &str, path: &str) -> bool {
    let is_same = |(part, value): (&str, &str)| part.starts_with('{') || part == value;
    pattern.split('/').count() == path.split('/').count()
        && pattern.split('/').zip(path.split('/')).all(is_same)
}

/// Returns the names of the actions whose forms the pages of a user with these rights have.
fn offered(rights: &dyn Rights) -> BTreeSet<&'static str> {
    let pages = pages(Language::ENGLISH, rights);
    let forms: Vec<_> = elements(&pages).into_iter().filter(|element| element.name == "form").collect();
    let is_offered = |path: &str| forms.iter().any(|form| matches(path, form.of("action")));
    actions().filter(|action| is_offered(action.path)).map(|action| action.name).collect()
}

#[test]
fn an_action_is_offered_exactly_with_its_right() {
    let all: BTreeSet<&str> = actions().map(|action| action.name).collect();
    assert_eq!(offered(&Everything(true)), all);
    assert_eq!(offered(&Everything(false)), BTreeSet::new());
    for right in actions().map(|action| action.right) {
        let others = actions().filter(|other| other.right != right);
        let others: BTreeSet<&str> = others.map(|action| action.name).collect();
        assert_eq!(offered(&AllExcept(right)), others, "{right:?}");
    }
}

#[test]
fn an_action_has_exactly_the_texts_that_its_place_shows() {
    let of_machine: BTreeSet<&str> = ACTIONS.iter().map(|of| of.action.name).collect();
    for language in Language::all() {
        let pages = pages(language, &Everything(true));
        for action in actions() {
            let (name, code) = (action.name, language.code());
            let texts = &texts(language).actions[name];
            let has_question = matches!(action.place, Place::Question | Place::Folded);
            let is_confirmed = action.place == Place::Question;
            assert_eq!(texts.question.is_some(), has_question, "{code}: question of {name}");
            assert_eq!(texts.consequence.is_some(), is_confirmed, "{code}: consequence of {name}");
            assert_eq!(texts.confirm.is_some(), is_confirmed, "{code}: confirm of {name}");
            // Only the page of a machine shows hints.
            assert!(texts.hint.is_none() || of_machine.contains(name), "{code}: hint of {name}");
            let shown =
                [Some(&texts.label), texts.hint.as_ref(), texts.consequence.as_ref(), texts.confirm.as_ref()];
            let fields = texts.fields.values().flat_map(|field| [&field.label, &field.hint]);
            for text in shown.into_iter().flatten().chain(fields) {
                let text = maud::html! { (text) }.into_string();
                assert!(pages.contains(&text), "{code}: {name}: {text:?} is on no page");
            }
        }
    }
}
