//! What forms change, and how that is said: an action is answered with the page on which its outcome is shown.

use http::{Response, StatusCode};
use hyper::body::Bytes;

use super::act::{Acting, Failure};
use super::answer::Dashboard;
use super::guard;
use super::login::{see_other, with_cookie};
use super::outcome::Outcome;
use super::page::{Done, State, login_at};
use super::route::{Action, Fields, OfMachine, Page, page_at};
use super::session::Form;
use super::visit::Visit;
use crate::runtime::error::ApiError;

impl Dashboard {
    /// The answer to a form.
    pub async fn act(&self, visit: &Visit<'_>, action: Action) -> Response<Bytes> {
        if !guard::is_from_own_page(visit.headers(), &self.config.public_url) {
            return visit.state("", &State::NotHere);
        }
        let fields = Fields::parse(visit.request.body());
        let page = page_of_action(&action);
        let present = match self.user(visit).await {
            Ok(present) => present,
            Err(answer) => {
                // The page shows what was typed after the login, or once it can be told again who this is.
                let is_over = answer.status() == StatusCode::SEE_OTHER;
                let outcome = if is_over { Outcome::Over } else { Outcome::NotNow };
                let form = failed(visit, &back_to(visit, page), outcome, String::new(), fields);
                let place = if is_over { login_at(&form.path) } else { form.path.clone() };
                return with_cookie(see_other(&place), &form.seal(&visit.keys, visit.now));
            }
        };
        let acting = Acting { client: self.users.client(), user: &present.user };
        // It is never closed.
        let turn = self.forms.acquire().await.ok();
        let done = Box::pin(self.done(&acting, &action, &fields)).await;
        drop(turn);
        let form = match done {
            Ok(outcome) => {
                let gone = matches!(action, Action::Machine(_, OfMachine::Delete));
                let page = if gone { Page::Home } else { back_to(visit, page) };
                Form { path: page.path(), outcome: outcome.word().to_owned(), ..Form::default() }
            }
            Err(failure) => {
                let (outcome, message) = Outcome::of_failure(&failure);
                let page = if outcome == Outcome::Gone { Page::Home } else { back_to(visit, page) };
                failed(visit, &page, outcome, message, fields)
            }
        };
        let answer = with_cookie(see_other(&form.path), &form.seal(&visit.keys, visit.now));
        match &present.cookie {
            Some(cookie) => with_cookie(answer, cookie),
            None => answer,
        }
    }

    async fn done(&self, acting: &Acting<'_>, action: &Action, fields: &Fields) -> Result<Outcome, Failure> {
        match action {
            Action::Create => acting.create(fields).await?,
            Action::StartDrive => {
                let none = || Failure::Api(ApiError::NotFound("there is no driveTemplate".to_owned()));
                let template = self.settings.drive_template.as_ref();
                let template = template.and_then(|of| super::route::key(&of.namespace, &of.name));
                acting.make(&template.ok_or_else(none)?, fields.get("name")).await?;
            }
            Action::Machine(key, act) => acting.machine(key, *act, fields).await?,
            Action::Join(course) => {
                let is_in = acting.join(course).await?;
                return Ok(Outcome::Done(if is_in { Done::Joined } else { Done::Asked }));
            }
            Action::Leave(course) => acting.leave(course).await?,
            Action::AddKey => acting.add_key(fields.get("key")).await?,
            Action::RemoveKey => acting.remove_key(fields.get("entry")).await?,
        }
        Ok(Outcome::of(action))
    }
}

/// The page with the form of an action.
fn page_of_action(action: &Action) -> Page {
    match action {
        Action::Create => Page::Home,
        Action::Machine(key, _) => Page::Machine(key.clone()),
        Action::Join(_) | Action::Leave(_) => Page::Courses,
        Action::AddKey | Action::RemoveKey | Action::StartDrive => Page::Account,
    }
}

/// The page that a form was sent from, which the browser says: several have the same forms.
fn back_to(visit: &Visit<'_>, otherwise: Page) -> Page {
    let referer = visit.headers().get(http::header::REFERER).and_then(|value| value.to_str().ok());
    let uri = referer.and_then(|referer| referer.parse::<http::Uri>().ok());
    uri.and_then(|uri| page_at(uri.path())).unwrap_or(otherwise)
}

/// What a page shows of a form that has changed nothing: why, and what was typed, with the path of the form before it.
fn failed(visit: &Visit<'_>, page: &Page, outcome: Outcome, message: String, Fields(fields): Fields) -> Form {
    let action = (visit.request.uri().path().to_owned(), String::new());
    let fields = std::iter::once(action).chain(fields).collect();
    Form { path: page.path(), outcome: outcome.word().to_owned(), message, fields, is_lost: false }
}
