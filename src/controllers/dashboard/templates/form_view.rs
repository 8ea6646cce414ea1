//! The HTML of the page with the form of a Template.

use maud::{Markup, html};
use serde_json::Value;

use super::actions::GENERATION;
use super::draft::{Draft, KEPT, KEYS, YAML, name_in};
use super::editing::{Content, Editing, FormPage, Preview, Version};
use super::fields::{ENVIRONMENT, Field, Group, Reach, SPEC};
use super::frame::frame;
use super::input_view::{self, Placed, id_of};
use super::place::{EDIT, LIST, NEW, ONE};
use super::preview_view;
use super::source::Sources;
use super::value::at;
use crate::api::shown::{message, shown};
use crate::controllers::dashboard::student::Student;
use crate::controllers::dashboard::ui::links::queried;
use crate::controllers::dashboard::ui::parts;
use crate::controllers::dashboard::ui::view::View;

/// Renders the page.
pub fn page(view: &View<'_>, student: &Student<'_>, editing: &Editing, page: &FormPage) -> Markup {
    let texts = &view.texts().templates;
    let may = editing.place.may(&editing.action().right);
    let title = if editing.is_new() { texts.new.as_str() } else { editing.name() };
    let content = html! {
        h2 { (shown(title)) }
        @if may {
            @if let Some(preview) = &page.preview { (preview_section(view, student, preview)) }
            @if !page.sources.is_empty() { (sources(view, editing, &page.sources)) }
            @if !editing.is_new() { p.hint { (texts.edit_hint) } }
            (form(view, editing, page))
        } @else {
            p { (view.texts().no_right) }
        }
    };
    frame(view, &editing.place, &content)
}

fn preview_section(view: &View<'_>, student: &Student<'_>, preview: &Preview) -> Markup {
    let texts = &view.texts().templates;
    html! {
        section aria-labelledby="preview" {
            h3 #preview { (texts.preview_title) }
            (preview_view::card(view, student, &preview.template))
            (preview_view::cost(view, &preview.cost))
            @if let Some(changes) = &preview.changes {
                h4 { (texts.changes) }
                (preview_view::changes(view, changes, preview.machines.as_deref()))
            }
        }
    }
}

/// The sources of a new Template.
fn sources(view: &View<'_>, editing: &Editing, sources: &Sources) -> Markup {
    let texts = &view.texts().templates;
    let path = editing.place.path(NEW, "");
    let kinds = [
        ("from", &texts.from_template, &sources.templates),
        ("snapshot", &texts.from_snapshot, &sources.snapshots),
        ("machine", &texts.from_machine, &sources.machines),
    ];
    html! {
        details.fold #sources hx-nonce=(view.nonce) {
            summary { (texts.sources) }
            @for (parameter, title, list) in kinds {
                @if !list.is_empty() {
                    p { (title) }
                    ul {
                        @for (name, of) in list {
                            li { a href=(queried(&path, &query(parameter, name))) { (shown(of)) } }
                        }
                    }
                }
            }
            p.hint { (texts.sources_hint) }
        }
    }
}

/// Returns a query with one field.
pub fn query(parameter: &str, value: &str) -> String {
    form_urlencoded::Serializer::new(String::new()).append_pair(parameter, value).finish()
}

/// The form, in one of its two views.
fn form(view: &View<'_>, editing: &Editing, page: &FormPage) -> Markup {
    let place = &editing.place;
    let path = if editing.is_new() { place.path(NEW, "") } else { place.path(EDIT, editing.name()) };
    let cancel = if editing.is_new() { place.path(LIST, "") } else { place.path(ONE, editing.name()) };
    let Version { uid, generation } = &page.version;
    let hidden =
        [("uid", uid.as_str()), (GENERATION, generation.as_str()), ("template", page.source.as_str())];
    let texts = &view.texts().templates;
    html! {
        form.fields method="post" action=(path) {
            (parts::hidden(&hidden))
            // The Enter key presses the first button.
            button.unseen type="submit" name="do" value="preview" tabindex="-1" aria-hidden="true" { (texts.preview) }
            @match &page.content {
                Content::Fields(draft) => { (fields(view, editing, page, draft)) },
                Content::Text(text) => { (text_view(view, page, text)) },
            }
            div.actions {
                button.main type="submit" name="do" value="save" { (view.action(editing.action()).label) }
                button type="submit" name="do" value="preview" { (texts.preview) }
                @match page.content {
                    Content::Fields(_) => {
                        button type="submit" name="do" value="text" formnovalidate { (texts.as_yaml) }
                    },
                    Content::Text(_) => {
                        button type="submit" name="do" value="fields" formnovalidate { (texts.as_form) }
                    },
                }
                a.button href=(cancel) { (view.texts().cancel) }
            }
        }
    }
}

/// The YAML view.
fn text_view(view: &View<'_>, page: &FormPage, text: &str) -> Markup {
    let texts = &view.texts().templates;
    let faults = page.faults.fields.values().chain(&page.faults.others);
    let faults: Vec<&String> = faults.collect();
    let (invalid, by) = if faults.is_empty() { (None, None) } else { (Some("true"), Some("yaml-error")) };
    html! {
        div.field {
            label for="yaml" { "YAML" }
            textarea id="yaml" name=(YAML) rows="30" spellcheck="false" autocomplete="off" data-draft required
                aria-invalid=[invalid] aria-describedby=[by] hx-morph-skip hx-nonce=(view.nonce) { (text) }
            @if !faults.is_empty() {
                div id="yaml-error" { @for fault in faults { p.error { (message(fault)) } } }
            }
            p.hint { (texts.yaml_hint) }
        }
    }
}

/// The fields of the form, in their groups.
fn fields(view: &View<'_>, editing: &Editing, page: &FormPage, draft: &Draft) -> Markup {
    let texts = &view.texts().templates;
    let keys = draft.keys.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let kept = draft.metadata.to_string();
    html! {
        (parts::hidden(&[(KEYS, keys.as_str()), (KEPT, kept.as_str())]))
        @if editing.is_new() { (name(view, page, &draft.name)) }
        (of_group(view, editing, page, Group::Basics, SPEC, &draft.spec, None))
        @for (position, (key, environment)) in draft.keyed().enumerate() {
            (self::environment(view, editing, page, position, key, environment))
        }
        button type="submit" name="do" value="add" formnovalidate { (texts.add_environment) }
        h3 { (texts.more_fields) }
        @for group in Group::OF_TEMPLATE.into_iter().filter(|group| *group != Group::Basics) {
            (of_group(view, editing, page, group, SPEC, &draft.spec, None))
        }
        (input_view::lists(&editing.choices))
    }
}

/// The name of a new Template.
fn name(view: &View<'_>, page: &FormPage, name: &str) -> Markup {
    let texts = &view.texts().templates;
    let fault = page.faults.fields.get("name");
    let id = id_of("name");
    let error_id = format!("{id}-error");
    let by = if fault.is_some() { format!("{error_id} {id}-hint") } else { format!("{id}-hint") };
    html! {
        div.field {
            label for=(id) { (texts.name) }
            input type="text" id=(id) name="name" value=(name) required maxlength="63" data-draft spellcheck="false"
                autocomplete="off" aria-describedby=(by) aria-invalid=[fault.map(|_| "true")] hx-morph-skip hx-nonce=(view.nonce);
            @if let Some(fault) = fault { p.error id=(error_id) { (message(fault)) } }
            p.hint id={ (id) "-hint" } { (texts.name_hint) }
        }
    }
}

/// An environment: its groups, and the button that removes it.
fn environment(
    view: &View<'_>,
    editing: &Editing,
    page: &FormPage,
    position: usize,
    key: u32,
    environment: &Value,
) -> Markup {
    let texts = &view.texts().templates;
    let title = texts.environment.fill(&[("number", &(position + 1).to_string())]);
    let id = format!("environment-{key}");
    let was = environment["name"].as_str().unwrap_or_default();
    let was_name = name_in(key, "was");
    html! {
        section.fields aria-labelledby=(id) {
            h3 id=(id) { (title) }
            (parts::hidden(&[(was_name.as_str(), was)]))
            @for group in Group::OF_ENVIRONMENT {
                (of_group(view, editing, page, group, ENVIRONMENT, environment, Some(key)))
            }
            button.danger type="submit" name="do" value={ "remove-" (key) } formnovalidate {
                (texts.remove_environment) (parts::unseen(&title))
            }
        }
    }
}

/// A group of fields, of the spec or of the environment with this key.
fn of_group(
    view: &View<'_>,
    editing: &Editing,
    page: &FormPage,
    group: Group,
    table: &'static [Field],
    object: &Value,
    key: Option<u32>,
) -> Markup {
    let texts = &view.texts().templates;
    let own: Vec<&'static Field> = table.iter().filter(|field| field.group == group).collect();
    let named = |field: &Field| key.map_or_else(|| field.name.to_owned(), |key| name_in(key, field.name));
    let is_faulty = own.iter().copied().any(|field| page.faults.fields.contains_key(&named(field)));
    let is_for_all = own.iter().all(|field| field.reach == Reach::All);
    let inputs = html! {
        @for field in own.iter().copied() {
            @let name = named(field);
            (input_view::field(view, &editing.choices, &Placed {
                field, name: &name, value: at(object, field.path), fault: page.faults.fields.get(&name),
            }))
        }
        @if !editing.is_new() && is_for_all { p.hint { (texts.for_all_hint) } }
    };
    if group.is_open() {
        return inputs;
    }
    let id = parts::id("group", &named(own.first().copied().unwrap_or(&SPEC[0])));
    html! {
        details.fold id=(id) open[is_faulty] hx-nonce=(view.nonce) {
            summary { (texts.groups.of(group)) }
            div.fields { (inputs) }
        }
    }
}
