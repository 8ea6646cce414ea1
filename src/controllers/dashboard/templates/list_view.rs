//! The HTML of the list of Templates, and of the page of one.

use maud::{Markup, html};
use serde_json::Value;

use super::actions::{CREATE, DELETE, DELETE_OWN, NAMESPACE};
use super::cost::Cost;
use super::draft::Draft;
use super::form_view::query;
use super::frame::frame;
use super::place::{EDIT, NEW, ONE, Place};
use super::preview_view::{card, cost, counts, list, state};
use super::used::{Counts, Used};
use super::yaml;
use crate::api::Template;
use crate::api::shown::{escaped_lines, shown};
use crate::api::template::TemplateKind;
use crate::api::usage::size;
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::student::{Student, template_title};
use crate::controllers::dashboard::ui::links::queried;
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::view::View;

/// Renders the list.
pub fn templates(view: &View<'_>, place: &Place, templates: &[Template], used: Option<&[Used]>) -> Markup {
    let texts = &view.texts().templates;
    let content = html! {
        section aria-labelledby="templates" {
            h2 #templates { (view.texts().course_pages.templates) }
            @if place.may(&CREATE.right) {
                div.actions { a.button.main href=(place.path(NEW, "")) { (texts.new) } }
            }
            @if templates.is_empty() { p.empty { (view.texts().no_templates_here) } }
            ul.cards { @for of in templates { li { (template(view, place, of, used)) } } }
        }
    };
    frame(view, place, &content)
}

/// A Template in the list: its status and its use.
fn template(view: &View<'_>, place: &Place, template: &Template, used: Option<&[Used]>) -> Markup {
    let texts = view.texts();
    let title = template_title(template);
    html! {
        article id=(parts::id("template", template.name())) {
            h3 { a href=(place.path(ONE, template.name())) { (shown(title)) } }
            (state(view, template))
            p {
                @match used {
                    Some(used) => { (counts(texts, Counts::of(used, place.namespace(), template.name()))) },
                    None => { (texts.templates.use_unknown) },
                }
            }
            ul.size {
                @for share in size(&template.spec) { li { (shown(&texts.named(&share.measure, &share.used))) } }
            }
            (links(view, place, template.namespace(), template.name(), title))
        }
    }
}

/// The links to the form of a Template.
fn links(view: &View<'_>, place: &Place, namespace: &str, name: &str, title: &str) -> Markup {
    let texts = &view.texts().templates;
    let copy = queried(&place.path(NEW, ""), &query("from", &format!("{namespace}/{name}")));
    html! {
        div.actions {
            @if place.may(&Right::to::<TemplateKind>("patch")) {
                a.button href=(place.path(EDIT, name)) { (texts.edit) (parts::unseen(title)) }
            }
            @if place.may(&CREATE.right) {
                a.button href=(copy) { (texts.copy) (parts::unseen(title)) }
            }
        }
    }
}

/// The page of a Template.
pub struct One<'a> {
    /// Its place.
    pub place: &'a Place,
    /// The Template.
    pub template: &'a Template,
    /// The Template as it is stored.
    pub stored: &'a Value,
    /// The machines of the place; `None` if they are not known.
    pub used: Option<&'a [Used]>,
    /// Its cost.
    pub cost: &'a Cost,
    /// The address of the link that starts it.
    pub link: &'a str,
}

/// Renders the page of a Template.
pub fn one(view: &View<'_>, student: &Student<'_>, of: &One<'_>) -> Markup {
    let One { place, template, stored, used, link, .. } = of;
    let texts = view.texts();
    let (namespace, name, title) = (template.namespace(), template.name(), template_title(template));
    let machines: Option<Vec<Used>> =
        used.map(|used| used.iter().filter(|machine| machine.is_of(namespace, name)).cloned().collect());
    let yaml = yaml::write(&Draft::of(stored).object(namespace));
    let yaml = escaped_lines(&yaml);
    let content = html! {
        h2 { (shown(title)) }
        p.soft { code { (shown(name)) } }
        (state(view, template))
        (links(view, place, namespace, name, title))
        div.actions {
            @if place.may(&Right::to::<TemplateKind>("patch")) {
                a.button href=(queried(&place.path(EDIT, name), &query("view", "text"))) { (texts.templates.edit_yaml) }
            }
            (delete(view, of))
        }
        section aria-labelledby="card" {
            h3 #card { (texts.templates.preview_title) }
            (card(view, student, template))
            (cost(view, of.cost))
            p { (texts.templates.link) ": " (parts::copied(view, link, &texts.templates.link)) }
        }
        section aria-labelledby="machines" {
            h3 #machines { (texts.measure_instances) }
            @if let Some(machines) = &machines {
                p { (counts(texts, Counts::of(machines, namespace, name))) }
            }
            @if machines.as_ref().is_none_or(|machines| !machines.is_empty()) { (list(view, machines.as_deref())) }
        }
        details.fold #yaml hx-nonce=(view.nonce) {
            summary { "YAML" }
            p { (parts::copy(view, &yaml, "YAML")) }
            pre tabindex="0" { code { (yaml) } }
        }
    };
    frame(view, place, &content)
}

/// The button that deletes a Template.
fn delete(view: &View<'_>, of: &One<'_>) -> Markup {
    let One { place, template, .. } = of;
    let action = if place.course().is_some() { &DELETE } else { &DELETE_OWN };
    if !place.may(&action.right) {
        return Markup::default();
    }
    let path = place.path((DELETE.path, DELETE_OWN.path), template.name());
    let fields = [("uid", template.uid()), (NAMESPACE, template.namespace())];
    let (about, key) = (template_title(template), template.name());
    parts::button(view, &Button { action, path: &path, about, key, fields: &fields, warning: None })
}
