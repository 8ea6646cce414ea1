//! The HTML of the fields of the form.

use maud::{Markup, html};

use super::choices::Choices;
use super::fields::{Field, Input};
use super::value::{MOST_ROWS, Shown, open_name, row_name, shown};
use crate::api::shown::{message, shown as escaped};
use crate::controllers::dashboard::texts::FieldTexts;
use crate::controllers::dashboard::ui::parts;
use crate::controllers::dashboard::ui::view::View;

/// The number of empty rows below the filled ones.
const EMPTY_ROWS: usize = 2;
/// The ids of the lists of choices.
const IMAGES: &str = "choices-images";
const LABELS: &str = "choices-labels";
const RESOURCES: &str = "choices-resources";

/// A field on the page.
pub struct Placed<'a> {
    /// The field.
    pub field: &'static Field,
    /// Its name in the form.
    pub name: &'a str,
    /// Its value.
    pub value: Option<&'a serde_json::Value>,
    /// Why it is invalid.
    pub fault: Option<&'a String>,
}

/// Returns the id of the element of a field.
pub fn id_of(name: &str) -> String {
    parts::id("field", name)
}

/// The lists that the fields offer while the user types.
pub fn lists(choices: &Choices) -> Markup {
    let resources = choices.room.as_ref().map(|room| room.extended().collect::<Vec<_>>()).unwrap_or_default();
    html! {
        @if !choices.images.is_empty() {
            datalist id=(IMAGES) { @for image in &choices.images { option value=(image) {} } }
        }
        @if !choices.labels.is_empty() {
            datalist id=(LABELS) { @for label in &choices.labels { option value=(label) {} } }
        }
        @if !resources.is_empty() {
            datalist id=(RESOURCES) {
                @for (name, amount) in resources { option value=(name) { (escaped(name)) ": " (amount.to_string()) } }
            }
        }
    }
}

/// The description of an element.
struct Described {
    by: Option<String>,
    invalid: Option<&'static str>,
}

/// A field with its label, its error and its hint.
pub fn field(view: &View<'_>, choices: &Choices, placed: &Placed<'_>) -> Markup {
    let Placed { field, name, value, fault } = placed;
    let Some(texts) = view.texts().templates.fields.get(field.name) else { return Markup::default() };
    let FieldTexts { label, hint, .. } = texts;
    let id = id_of(name);
    let [error_id, hint_id] = ["error", "hint"].map(|part| format!("{id}-{part}"));
    let by = [fault.map(|_| error_id.as_str()), (!hint.is_empty()).then_some(hint_id.as_str())];
    let by = by.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let described = Described { by: Some(by).filter(|by| !by.is_empty()), invalid: fault.map(|_| "true") };
    let found = shown(field, *value);
    html! {
        div.field {
            @match &found {
                Shown::Rows(rows, is_open) => {
                    div role="group" id=(id) aria-labelledby={ (id) "-label" } aria-describedby=[&described.by] {
                        p id={ (id) "-label" } { strong { (label) } }
                        (self::rows(view, choices, field, name, rows))
                        @if field.input == Input::Labels { (open(view, name, *is_open)) }
                    }
                },
                Shown::YesNo(is_on) => p.check {
                    input type="checkbox" id=(id) name=(name) value="on" checked[*is_on] aria-describedby=[&described.by]
                        aria-invalid=[described.invalid] hx-morph-skip hx-nonce=(view.nonce);
                    " " label for=(id) { (label) }
                },
                Shown::Text(text) => {
                    label for=(id) { (label) }
                    (input(view, choices, placed, text, &described))
                },
            }
            @if let Some(fault) = fault { p.error id=(error_id) { (message(fault)) } }
            @if !hint.is_empty() { p.hint id=(hint_id) { (hint) } }
        }
    }
}

/// The element of a field with one text.
fn input(
    view: &View<'_>,
    choices: &Choices,
    placed: &Placed<'_>,
    text: &str,
    described: &Described,
) -> Markup {
    let Placed { field, name, .. } = placed;
    let (id, nonce) = (id_of(name), view.nonce);
    let Described { by, invalid } = described;
    let required = field.is_required;
    let list = (field.input == Input::Image && !choices.images.is_empty()).then_some(IMAGES);
    html! {
        @match field.input {
            Input::Area | Input::Lines => {
                textarea id=(id) name=(name) rows="3" required[required] data-draft aria-describedby=[by]
                    aria-invalid=[invalid] hx-morph-skip hx-nonce=(nonce) { (text) }
            },
            Input::OneOf(all) => { (select(view, placed, described, text, all.iter().copied(), false)) },
            Input::StorageClass if !choices.storage_classes.is_empty() => {
                (select(view, placed, described, text, choices.storage_classes.iter().map(String::as_str), true))
            },
            Input::Number => {
                input type="text" inputmode="numeric" id=(id) name=(name) value=(text) required[required] data-draft
                    aria-describedby=[by] aria-invalid=[invalid] hx-morph-skip hx-nonce=(nonce);
            },
            _ => {
                input type="text" id=(id) name=(name) value=(text) list=[list] required[required] data-draft spellcheck="false"
                    autocomplete="off" aria-describedby=[by] aria-invalid=[invalid] hx-morph-skip hx-nonce=(nonce);
            },
        }
    }
}

/// A choice. A stored value that is not among the options is one of them, too.
fn select<'o>(
    view: &View<'_>,
    placed: &Placed<'_>,
    described: &Described,
    text: &str,
    options: impl Iterator<Item = &'o str>,
    can_be_empty: bool,
) -> Markup {
    let options: Vec<&str> = options.collect();
    let is_other = !text.is_empty() && !options.contains(&text);
    let words = view.texts().templates.fields.get(placed.field.name).map(|texts| &texts.values);
    let word = |option: &str| {
        words.and_then(|words| words.get(option)).cloned().unwrap_or_else(|| escaped(option).into_owned())
    };
    html! {
        select id=(id_of(placed.name)) name=(placed.name) data-draft aria-describedby=[&described.by]
            aria-invalid=[described.invalid] hx-morph-skip hx-nonce=(view.nonce) {
            @if can_be_empty || text.is_empty() { option value="" { (view.texts().templates.default_choice) } }
            @if is_other { option value=(text) selected { (escaped(text)) } }
            @for option in &options { option value=(option) selected[*option == text] { (word(option)) } }
        }
    }
}

/// The box that leaves the choice of nodes to users.
fn open(view: &View<'_>, name: &str, is_open: bool) -> Markup {
    let name = open_name(name);
    let id = id_of(&name);
    html! {
        p.check {
            input type="checkbox" id=(id) name=(name) value="on" checked[is_open] hx-morph-skip hx-nonce=(view.nonce);
            " " label for=(id) { (view.texts().templates.users_choose) }
        }
    }
}

/// The rows of a field, followed by empty ones.
fn rows(view: &View<'_>, choices: &Choices, field: &Field, name: &str, rows: &[[String; 3]]) -> Markup {
    let count = (rows.len() + EMPTY_ROWS).min(MOST_ROWS);
    let empty = [String::new(), String::new(), String::new()];
    html! {
        @for number in 0..count {
            (row(view, choices, field, &|column| row_name(name, number, column), rows.get(number).unwrap_or(&empty)))
        }
    }
}

fn row(
    view: &View<'_>,
    choices: &Choices,
    field: &Field,
    name: &dyn Fn(usize) -> String,
    columns: &[String; 3],
) -> Markup {
    let texts = &view.texts().templates;
    let [first, second, third] = columns;
    let text = |column: usize, label: &str, value: &str, list: Option<&str>| {
        let name = name(column);
        let id = id_of(&name);
        html! {
            label.unseen for=(id) { (label) }
            input type="text" id=(id) name=(name) value=(value) list=[list] placeholder=(label) data-draft spellcheck="false"
                autocomplete="off" hx-morph-skip hx-nonce=(view.nonce);
        }
    };
    html! {
        div.columns {
            @match field.input {
                Input::Labels => {
                    (text(0, &texts.label_column, first, (!choices.labels.is_empty()).then_some(LABELS)))
                },
                Input::Resources => {
                    (text(0, &texts.resource_column, first, choices.room.as_ref().map(|_| RESOURCES)))
                    (text(1, &texts.amount_column, second, None))
                },
                _ => {
                    (volume(view, choices, &name(0), first))
                    (text(1, &texts.path_column, second, None))
                    (read_only(view, &name(2), !third.is_empty()))
                },
            }
        }
    }
}

/// The choice of a shared volume; a text if the user may not list them.
fn volume(view: &View<'_>, choices: &Choices, name: &str, value: &str) -> Markup {
    let (id, label) = (id_of(name), &view.texts().templates.volume_column);
    let is_other = !value.is_empty() && !choices.volumes.iter().any(|known| known == value);
    html! {
        label.unseen for=(id) { (label) }
        @if choices.volumes.is_empty() {
            input type="text" id=(id) name=(name) value=(value) placeholder=(label) data-draft hx-morph-skip hx-nonce=(view.nonce);
        } @else {
            select id=(id) name=(name) data-draft hx-morph-skip hx-nonce=(view.nonce) {
                option value="" { (label) }
                @if is_other { option value=(value) selected { (escaped(value)) } }
                @for known in &choices.volumes { option value=(known) selected[known == value] { (escaped(known)) } }
            }
        }
    }
}

fn read_only(view: &View<'_>, name: &str, is_on: bool) -> Markup {
    let id = id_of(name);
    html! {
        span.check {
            input type="checkbox" id=(id) name=(name) value="on" checked[is_on] hx-morph-skip hx-nonce=(view.nonce);
            " " label for=(id) { (view.texts().templates.read_only) }
        }
    }
}
