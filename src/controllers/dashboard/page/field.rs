//! Fields of forms: each with its label, a hint, and what is wrong with what was typed.

use maud::{Markup, html};

use super::view::View;
use crate::api::shown::escaped;

/// What is typed into a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input<'a> {
    /// A line of text.
    Line {
        /// The most characters.
        most: usize,
        /// What it has to look like, as a regular expression; empty for anything.
        pattern: &'a str,
    },
    /// A whole number.
    Number {
        /// The least.
        least: u32,
        /// The most.
        most: u32,
    },
    /// Several lines of text.
    Lines,
    /// One of these.
    OneOf(&'a [&'a str]),
}

/// A field of a form.
pub struct Field<'a> {
    /// Where the form is sent.
    pub action: &'a str,
    /// The name of the field.
    pub name: &'a str,
    /// Its id, by which a live change finds it again.
    pub id: &'a str,
    /// Its label.
    pub label: &'a str,
    /// What is expected; empty for nothing to say.
    pub hint: &'a str,
    /// What it has at first.
    pub value: &'a str,
    /// What is typed into it.
    pub input: Input<'a>,
}

/// A field with its label. A live change leaves alone what is typed into it.
pub fn field(view: &View<'_>, field: &Field<'_>) -> Markup {
    let Field { action, name, id, label, hint, .. } = field;
    let error = view.error_of(action, name);
    let (hint_id, error_id) = (format!("{id}-hint"), format!("{id}-error"));
    let described = match (hint.is_empty(), error) {
        (true, None) => None,
        (true, Some(_)) => Some(error_id.clone()),
        (false, None) => Some(hint_id.clone()),
        (false, Some(_)) => Some(format!("{error_id} {hint_id}")),
    };
    html! {
        div.field {
            label for=(id) { (label) }
            (input(view, field, described.as_deref(), error.is_some()))
            @if let Some(error) = error { p.error id=(error_id) { (escaped(error)) } }
            @if !hint.is_empty() { p.hint id=(hint_id) { (hint) } }
        }
    }
}

fn input(view: &View<'_>, field: &Field<'_>, described: Option<&str>, is_wrong: bool) -> Markup {
    let Field { action, name, id, value, input, .. } = field;
    let value = view.typed_in(action, name).unwrap_or(value);
    let invalid = is_wrong.then_some("true");
    let nonce = view.nonce;
    html! {
        @match input {
            Input::Line { most, pattern } => {
                input type="text" id=(id) name=(name) value=(value) maxlength=(most) required autocomplete="off"
                    pattern=[Some(*pattern).filter(|pattern| !pattern.is_empty())]
                    aria-describedby=[described] aria-invalid=[invalid] hx-morph-skip hx-nonce=(nonce);
            },
            Input::Number { least, most } => {
                input type="number" id=(id) name=(name) value=(value) min=(least) max=(most) required inputmode="numeric"
                    aria-describedby=[described] aria-invalid=[invalid] hx-morph-skip hx-nonce=(nonce);
            },
            Input::Lines => {
                textarea id=(id) name=(name) rows="4" required autocomplete="off" spellcheck="false"
                    aria-describedby=[described] aria-invalid=[invalid] hx-morph-skip hx-nonce=(nonce) { (value) }
            },
            Input::OneOf(all) => {
                select id=(id) name=(name) aria-describedby=[described] aria-invalid=[invalid] hx-morph-skip hx-nonce=(nonce) {
                    @for one in *all { option value=(one) selected[one == &value] { (one) } }
                }
            },
        }
    }
}
