//! The form of an action: its fields, each with a label and a hint.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::parts;
use super::view::View;
use crate::api::shown::{message, shown};
use crate::controllers::dashboard::action::entry::{Action, Field, Input};
use crate::controllers::dashboard::texts::FieldTexts;

/// The form of an action.
pub struct Form<'a> {
    /// The action.
    pub action: &'static Action,
    /// The path that receives it.
    pub path: &'a str,
    /// The hidden fields.
    pub hidden: &'a [(&'a str, &'a str)],
    /// The initial values of the fields that are not empty.
    pub values: &'a [(&'a str, &'a str)],
    /// Whether its button is the main one of the page.
    pub is_main: bool,
}

/// Renders a form.
pub fn form(view: &View<'_>, form: &Form<'_>) -> Markup {
    let Form { action, path, hidden, values, is_main } = form;
    let texts = view.action(action);
    html! {
        form.fields method="post" action=(path) {
            (parts::hidden(hidden))
            @for of in action.fields {
                @let value = values.iter().find(|(name, _)| *name == of.name).map_or("", |(_, value)| value);
                @if let Some(texts) = texts.fields.get(of.name) { (field(view, path, of, texts, value)) }
            }
            button.main[*is_main] type="submit" { (texts.label) }
        }
    }
}

/// An optional field of a form, of which the page has several: `key` distinguishes their ids. `is_typed` is true for the
/// form that was rejected. A choice has these options.
pub fn optional(
    view: &View<'_>,
    action: &Action,
    field: &Field,
    (key, is_typed): (&str, bool),
    options: &[String],
) -> Markup {
    let Some(FieldTexts { label, hint, .. }) = view.action(action).fields.get(field.name) else {
        return Markup::default();
    };
    let Field { name, id, input } = field;
    let [id, hint_id] = [format!("{id}-{key}"), format!("{id}-{key}-hint")];
    let described = (!hint.is_empty()).then_some(hint_id.as_str());
    let value = view.typed_in(action.path, name).filter(|_| is_typed).unwrap_or_default();
    html! {
        div.field {
            label for=(id) { (label) }
            @if let Input::Line { max, .. } = input {
                input type="text" id=(id) name=(name) value=(value) maxlength=(max) data-draft
                    aria-describedby=[described] hx-morph-skip hx-nonce=(view.nonce);
            } @else {
                select id=(id) name=(name) data-draft aria-describedby=[described] hx-morph-skip hx-nonce=(view.nonce) {
                    option value="" { (view.texts().any_node) }
                    @for option in options { option value=(option) selected[option == value] { (shown(option)) } }
                }
            }
            @if !hint.is_empty() { p.hint id=(hint_id) { (hint) } }
        }
    }
}

/// A field with its label, and with the error if the form was rejected because of it. A live update does not touch its
/// content.
fn field(view: &View<'_>, path: &str, field: &Field, texts: &FieldTexts, value: &str) -> Markup {
    let FieldTexts { label, hint, values } = texts;
    let wrong = view.wrong_in(path, field.name);
    let [error_id, hint_id] = ["error", "hint"].map(|part| format!("{}-{part}", field.id));
    let parts = [(wrong.is_some(), error_id.as_str()), (!hint.is_empty(), hint_id.as_str())];
    let described: Vec<&str> =
        parts.into_iter().filter(|(is_there, _)| *is_there).map(|(_, id)| id).collect();
    let described = described.join(" ");
    html! {
        div.field {
            label for=(field.id) { (label) }
            (input(view, path, field, value, &Described { by: &described, is_wrong: wrong.is_some(), values }))
            @if let Some(why) = wrong { p.error id=(error_id) { (message(why)) } }
            @if !hint.is_empty() { p.hint id=(hint_id) { (hint) } }
        }
    }
}

/// The description of a field.
struct Described<'a> {
    /// The ids of the elements that describe it for screen readers; empty for none.
    by: &'a str,
    /// Whether its content is invalid.
    is_wrong: bool,
    /// The words for the values of a choice.
    values: &'a BTreeMap<String, String>,
}

/// The element of a field. The script keeps drafts of fields with `data-draft`, which is never a key.
fn input(view: &View<'_>, path: &str, field: &Field, value: &str, described: &Described<'_>) -> Markup {
    let Field { name, id, input } = field;
    let value = view.typed_in(path, name).unwrap_or(value);
    let nonce = view.nonce;
    let by = Some(described.by).filter(|by| !by.is_empty());
    let invalid = described.is_wrong.then_some("true");
    html! {
        @match input {
            Input::Line { max, pattern } => {
                input type="text" id=(id) name=(name) value=(value) maxlength=(max) required data-draft
                    pattern=[Some(*pattern).filter(|pattern| !pattern.is_empty())]
                    aria-describedby=[by] aria-invalid=[invalid] hx-morph-skip hx-nonce=(nonce);
            },
            Input::OptionalLine { max } => {
                input type="text" id=(id) name=(name) value=(value) maxlength=(max) data-draft
                    aria-describedby=[by] aria-invalid=[invalid] hx-morph-skip hx-nonce=(nonce);
            },
            Input::Number { min, max } => {
                input type="number" id=(id) name=(name) value=(value) min=(min) max=(max) required inputmode="numeric" data-draft
                    aria-describedby=[by] aria-invalid=[invalid] hx-morph-skip hx-nonce=(nonce);
            },
            Input::Lines => {
                textarea id=(id) name=(name) rows="4" required autocomplete="off" spellcheck="false"
                    aria-describedby=[by] aria-invalid=[invalid] hx-morph-skip hx-nonce=(nonce) { (value) }
            },
            Input::OneOf(all) => {
                select id=(id) name=(name) data-draft aria-describedby=[by] aria-invalid=[invalid] hx-morph-skip hx-nonce=(nonce) {
                    @for one in *all { option value=(one) selected[*one == value] { (described.values.get(*one).map_or(*one, String::as_str)) } }
                }
            },
        }
    }
}
