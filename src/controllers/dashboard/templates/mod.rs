//! The pages of Templates: the list, the page of a Template, and its form, in a course and in the personal workspace of
//! each user.
//!
//! | file | content |
//! |---|---|
//! | `fields.rs` | the table of all fields, from which the form, its texts and the places of errors derive |
//! | `value.rs`, `draft.rs`, `yaml.rs` | between the object, the form and the YAML view |
//! | `save.rs` | the form: its two views, the preview, and the change |
//! | `faults.rs` | the messages of the API server and the webhook, each at its field |
//! | `choices.rs`, `used.rs`, `source.rs` | what the pages read from the cluster |
//! | `cost.rs`, `changes.rs` | the resources of a class, and the machines that a change does not affect |

pub mod actions;
mod changes;
mod choices;
mod cost;
mod draft;
mod editing;
mod faults;
pub mod fields;
mod form_view;
mod frame;
mod input_view;
mod list_view;
mod place;
mod preview_view;
pub mod save;
mod source;
#[cfg(test)]
pub mod tests;
mod used;
mod value;
mod yaml;

use axum::extract::RawPathParams;
use axum::response::Response;
use futures::join;

use self::cost::Cost;
use self::draft::Draft;
use self::editing::{Content, Editing, FormPage, Version};
use self::list_view::One;
use self::place::{Place, parameters};
use self::source::Sources;
use self::used::Used;
use super::page::PageRequest;
use super::paths;
use super::ui::state::state;
use super::ui::view::{Live, View};
use crate::api::Template;
use crate::api::template::{TemplateKind, TemplateSpec};

/// Serves the list of a place.
pub async fn list(request: PageRequest, raw: RawPathParams) -> Result<Response, Response> {
    let parameters = parameters(&raw);
    let read = request.read(async |reads| {
        let mut place = Place::read(&reads, &parameters).await?;
        let namespace = place.namespace().to_owned();
        let (client, credential) = (&reads.users.client, &reads.user.credential);
        let listed = client.list::<TemplateKind>(credential, &namespace, "");
        let (templates, used) = join!(listed, Used::read(&reads, &place));
        let mut templates: Vec<Template> = templates?;
        templates.sort_by_cached_key(|template| template.name().to_owned());
        place.follow();
        Ok((place, templates, used?))
    });
    let (place, templates, used) = read.await.map_err(|error| request.failed(&error))?;
    let own = place.own();
    Ok(request.answer(own, &request.app.settings, None, |view, _| match own.lacks() {
        Some(lacks) if place.course().is_none() => state(view, &lacks),
        _ => list_view::templates(view, &place, &templates, used.as_deref()),
    }))
}

/// Serves the page of a Template.
pub async fn one(request: PageRequest, raw: RawPathParams) -> Result<Response, Response> {
    let parameters = parameters(&raw);
    let labels = &request.app.settings.node_labels;
    let read = request.read(async |reads| {
        let mut editing = Editing::read(&reads, &parameters, labels).await?;
        editing.place.follow();
        Ok(Box::new(editing))
    });
    let editing = read.await.map_err(|error| request.failed(&error))?;
    let Editing { place, stored, choices, used, students } = &*editing;
    // The API server returns only objects.
    let empty = || Template::new(Some(place.namespace()), editing.name(), TemplateSpec::default());
    let template: Template = serde_json::from_value(stored.clone()).unwrap_or_else(|_| empty());
    let cost = Cost::of(&template.spec, *students, choices.room.as_ref());
    let start = place.path((paths::NEW, "/new/personal/{template}"), template.name());
    let link = format!("{}{start}", request.app.config.public_url);
    Ok(request.answer(place.own(), &request.app.settings, None, |view, student| {
        let (used, template) = (used.as_deref(), &template);
        list_view::one(view, student, &One { place, template, stored, used, cost: &cost, link: &link })
    }))
}

/// Serves the form of a Template.
pub async fn form(request: PageRequest, raw: RawPathParams) -> Result<Response, Response> {
    let parameters = parameters(&raw);
    let query = &request.user.context.query;
    let labels = &request.app.settings.node_labels;
    let read = request.read(async |reads| {
        let editing = Editing::read(&reads, &parameters, labels).await?;
        let draft = if editing.is_new() {
            source::draft(&reads, &editing.place, query).await?
        } else {
            Draft::of(&editing.stored)
        };
        let mut page = FormPage::new(Content::Fields(Box::new(draft)), Version::of(&editing.stored));
        let source = ["from", "snapshot", "machine"].map(|parameter| query.get(parameter)).concat();
        if editing.is_new() && source.is_empty() {
            page.sources = Sources::read(&reads, &editing.place).await?;
        }
        page.source = source;
        Ok((Box::new(editing), page))
    });
    let (editing, mut page) = read.await.map_err(|error| request.failed(&error))?;
    if query.get("view") == "text"
        && let Content::Fields(draft) = &page.content
    {
        page.content = Content::Text(yaml::write(&draft.object(editing.place.namespace())));
    }
    Ok(request.answer(editing.place.own(), &request.app.settings, None, |view, student| {
        // An update would discard what the user types.
        let view = View { live: Live::Never, ..*view };
        form_view::page(&view, student, &editing, &page)
    }))
}
