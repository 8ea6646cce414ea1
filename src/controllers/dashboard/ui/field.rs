//! The form of an action: its fields, each with a label and a hint.

use maud::{Markup, html};

use super::parts;
use super::view::View;
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

/// A field with its label. A live update does not touch its content.
fn field(view: &View<'_>, path: &str, field: &Field, texts: &FieldTexts, value: &str) -> Markup {
    let FieldTexts { label, hint } = texts;
    let hint_id = (!hint.is_empty()).then(|| format!("{}-hint", field.id));
    html! {
        div.field {
            label for=(field.id) { (label) }
            (input(view, path, field, value, hint_id.as_deref()))
            @if let Some(id) = &hint_id { p.hint id=(id) { (hint) } }
        }
    }
}

/// The element of a field, with the id of the element that describes it.
fn input(view: &View<'_>, path: &str, field: &Field, value: &str, described: Option<&str>) -> Markup {
    let Field { name, id, input } = field;
    let value = view.typed_in(path, name).unwrap_or(value);
    let nonce = view.nonce;
    html! {
        @match input {
            Input::Line { max, pattern } => {
                input type="text" id=(id) name=(name) value=(value) maxlength=(max) required autocomplete="off"
                    pattern=[Some(*pattern).filter(|pattern| !pattern.is_empty())]
                    aria-describedby=[described] hx-morph-skip hx-nonce=(nonce);
            },
            Input::Number { min, max } => {
                input type="number" id=(id) name=(name) value=(value) min=(min) max=(max) required inputmode="numeric"
                    aria-describedby=[described] hx-morph-skip hx-nonce=(nonce);
            },
            Input::Lines => {
                textarea id=(id) name=(name) rows="4" required autocomplete="off" spellcheck="false"
                    aria-describedby=[described] hx-morph-skip hx-nonce=(nonce) { (value) }
            },
            Input::OneOf(all) => {
                select id=(id) name=(name) aria-describedby=[described] hx-morph-skip hx-nonce=(nonce) {
                    @for one in *all { option value=(one) selected[*one == value] { (one) } }
                }
            },
        }
    }
}
