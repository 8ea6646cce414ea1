//! The form of a Template: a change of its view, a preview, or the change of the Template. Its content is too long for the
//! cookie of a flash message, so the response to an invalid form is the form itself.

use axum::body::Bytes;
use axum::extract::RawPathParams;
use axum::response::Response;
use futures::future::BoxFuture;
use http::StatusCode;
use serde::de::IgnoredAny;
use serde_json::json;

use super::actions::{GENERATION, NAMESPACE};
use super::draft::{Draft, YAML};
use super::editing::{Content, Editing, FormPage, Version};
use super::faults::Faults;
use super::fields::TEMPLATES;
use super::form_view;
use super::input_view::id_of;
use super::place::{LIST, ONE, parameters};
use super::yaml;
use crate::api::names::check_object_name;
use crate::controllers::dashboard::action::entry::{Action, Form};
use crate::controllers::dashboard::action::result::{Failure, Outcome};
use crate::controllers::dashboard::app::permit;
use crate::controllers::dashboard::http::csrf::SameOrigin;
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::http::response::{see_other, with_cookie};
use crate::controllers::dashboard::page::PageRequest;
use crate::controllers::dashboard::session::Flash;
use crate::controllers::dashboard::texts::{Problem, Texts, texts};
use crate::controllers::dashboard::ui::view::{Live, Notice, Typed, View};
use crate::controllers::dashboard::user::users::User;
use crate::runtime::client::{Call, Patch, UserClient};
use crate::runtime::{ObjectKey, merge};

/// The name that the path of the form of a new Template has.
const RESERVED: &str = "new";

/// Carries out an action with the client and the user of a request.
pub type CarryOut = for<'a> fn(
    &'a UserClient,
    &'a User,
    &'static Action,
    &'a Form<'a>,
) -> BoxFuture<'a, Result<&'static str, Failure>>;

/// Handles a form.
pub async fn save(
    _: SameOrigin,
    request: PageRequest,
    raw: RawPathParams,
    body: Bytes,
    carry_out: CarryOut,
) -> Result<Response, Response> {
    let (parameters, mut fields) = (parameters(&raw), Fields::parse(&body));
    let labels = &request.app.settings.node_labels;
    let read = request.read(async |reads| Editing::read(&reads, &parameters, labels).await.map(Box::new));
    let editing = read.await.map_err(|error| request.failed(&error))?;
    // The page decides on the namespace, and not the form.
    fields.0.retain(|(name, _)| name != NAMESPACE);
    fields.0.push((NAMESPACE.to_owned(), editing.place.namespace().to_owned()));
    let is_text = fields.0.iter().any(|(name, _)| name == YAML);
    let page = |content: Content, faults: Faults| {
        let version =
            Version { uid: fields.get("uid").to_owned(), generation: fields.get(GENERATION).to_owned() };
        let source = fields.get("template").to_owned();
        FormPage { faults, source, ..FormPage::new(content, version) }
    };
    let draft = match Draft::of_form(&fields, &editing.stored) {
        Ok(draft) => draft,
        Err(fault) => {
            let content = Content::Text(fields.get(YAML).to_owned());
            return Ok(answer(&request, &editing, &page(content, Faults::of_form(fault))));
        }
    };
    let command = fields.get("do");
    if let Some(content) = other_view(command, &draft, editing.place.namespace()) {
        return Ok(answer(&request, &editing, &page(content, Faults::default())));
    }
    let texts = texts(request.user.context.language);
    let preview = if command == "preview" { editing.preview(&draft) } else { None };
    let result = if let Some(faults) = named(&editing, &draft, texts) {
        Err(faults)
    } else {
        let done = match permit(&request.app.forms).await {
            Some(_permit) if command == "preview" => Box::pin(check(&request, &editing, &draft)).await,
            Some(_permit) => {
                let form = Form { parameters, fields: fields.clone(), drive_template: None };
                let (client, user) = (&request.app.users.client, &request.user.user);
                carry_out(client, user, editing.action(), &form).await.map(Some)
            }
            None => Err(Problem::NotNow.into()),
        };
        done.map_err(|failure| Faults::of(&failure, &draft, is_text, texts))
    };
    let (faults, preview) = match result {
        Ok(Some(done)) => return Ok(stored(&request, &editing, &draft.name, done)),
        Ok(None) => (Faults::default(), preview),
        Err(faults) => (faults, None),
    };
    let content =
        if is_text { Content::Text(fields.get(YAML).to_owned()) } else { Content::Fields(Box::new(draft)) };
    let mut page = FormPage { preview, ..page(content, faults) };
    if page.faults.is_outdated {
        page.version = Version::of(&editing.stored);
    }
    Ok(answer(&request, &editing, &page))
}

/// Returns the content after a command that only changes the form; `None` for another command.
fn other_view(command: &str, draft: &Draft, namespace: &str) -> Option<Content> {
    let mut next = draft.clone();
    match command {
        "add" => next.add(),
        "fields" => {}
        "text" => return Some(Content::Text(yaml::write(&draft.object(namespace)))),
        _ => next.remove(command.strip_prefix("remove-")?.parse().ok()?),
    }
    Some(Content::Fields(Box::new(next)))
}

/// Returns the fault of the name of a new Template.
fn named(editing: &Editing, draft: &Draft, texts: &Texts) -> Option<Faults> {
    if !editing.is_new() {
        return None;
    }
    let fault = match check_object_name(&draft.name) {
        Err(error) => error.to_string(),
        Ok(()) if draft.name == RESERVED => texts.templates.reserved.clone(),
        Ok(()) => return None,
    };
    Some(Faults::of_field("name", fault))
}

/// Makes the API server and the webhook check the Template, without storing it.
async fn check(
    request: &PageRequest,
    editing: &Editing,
    draft: &Draft,
) -> Result<Option<&'static str>, Failure> {
    let namespace = editing.place.namespace();
    let call = if editing.is_new() {
        let mut body = draft.body();
        merge::apply(&mut body, &json!({"metadata": {"name": draft.name}}));
        Call::create(TEMPLATES, namespace, &body)?
    } else {
        let Some(patch) = draft.patch(&editing.stored) else { return Ok(None) };
        Call::patch(TEMPLATES, &ObjectKey::new(namespace, draft.name.as_str()), Patch::Merge(&patch))?
    };
    let (client, credential) = (&request.app.users.client, &request.user.user.credential);
    client.call::<IgnoredAny>(credential, call.dry()).await?;
    Ok(None)
}

/// Returns the response after the change: the redirect to the page of the Template, or to the list with the new one.
fn stored(request: &PageRequest, editing: &Editing, name: &str, done: &str) -> Response {
    let context = &request.user.context;
    let flash = Flash {
        path: editing.place.path(if editing.is_new() { LIST } else { ONE }, name),
        outcome: Outcome::Done(done.to_owned()),
        message: String::new(),
        fields: Vec::new(),
        is_lost: false,
        is_shown: false,
    };
    let cookie = flash.seal(&context.keys, context.now, context.room_for_flash);
    request.user.answer(with_cookie(see_other(&flash.path), &cookie))
}

/// Returns the response with the form.
fn answer(request: &PageRequest, editing: &Editing, page: &FormPage) -> Response {
    let texts = texts(request.user.context.language);
    let Faults { fields, others, .. } = &page.faults;
    let notice = (!page.faults.is_empty()).then(|| {
        let sentences = [&texts.templates.not_saved].into_iter().chain(others).map(String::as_str);
        Notice::Failed(sentences.collect::<Vec<_>>().join(" "))
    });
    let wrong = match page.content {
        Content::Fields(_) => fields.keys().next().map(|name| (name.as_str(), id_of(name))),
        Content::Text(_) => notice.as_ref().map(|_| (YAML, "yaml".to_owned())),
    };
    let settings = &request.app.settings;
    let mut answer = request.answer(editing.place.own(), settings, None, |view, student| {
        let wrong = wrong.as_ref().map(|(name, id)| (*name, id.as_str()));
        let view = View {
            // An update would discard what the user types.
            live: Live::Never,
            notice: notice.as_ref(),
            typed: wrong.map(|wrong| Typed { action: view.path, values: &[], wrong: Some(wrong) }),
            ..*view
        };
        form_view::page(&view, student, editing, page)
    });
    if !page.faults.is_empty() {
        *answer.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
    }
    answer
}
