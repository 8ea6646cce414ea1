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
            Err(answer) if answer.status() == StatusCode::SEE_OTHER => {
                return over(visit, &page, fields);
            }
            Err(answer) => return answer,
        };
        let acting = Acting { client: self.users.client(), user: &present.user };
        // It is never closed.
        let turn = self.forms.acquire().await.ok();
        let done = Box::pin(self.done(&acting, &action, &fields)).await;
        drop(turn);
        let (page, form) = match done {
            Ok(outcome) => {
                let gone = matches!(action, Action::Machine(_, OfMachine::Delete));
                let page = if gone { Page::Home } else { back_to(visit, page) };
                let form = Form { path: page.path(), outcome: outcome.word().to_owned(), ..Form::default() };
                (page, form)
            }
            Err(failure) => {
                let (outcome, message) = Outcome::of_failure(&failure);
                let page = if outcome == Outcome::Gone { Page::Home } else { back_to(visit, page) };
                let path = page.path();
                let outcome = outcome.word().to_owned();
                (page, Form { path, outcome, message, fields: typed(visit, fields) })
            }
        };
        let answer = with_cookie(see_other(&page.path()), &form.seal(&visit.keys, visit.now).0);
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

/// What was typed, with the path of its form before it.
fn typed(visit: &Visit<'_>, Fields(fields): Fields) -> Vec<(String, String)> {
    let action = (visit.request.uri().path().to_owned(), String::new());
    std::iter::once(action).chain(fields).collect()
}

/// The answer to a form that comes after the end of its session: the browser logs in, and finds what was typed.
fn over(visit: &Visit<'_>, page: &Page, fields: Fields) -> Response<Bytes> {
    let page = back_to(visit, page.clone());
    let path = page.path();
    let outcome = |is_whole| Outcome::Over(is_whole).word().to_owned();
    let form = Form {
        path: path.clone(),
        outcome: outcome(true),
        message: String::new(),
        fields: typed(visit, fields),
    };
    let cookie = match form.seal(&visit.keys, visit.now) {
        (cookie, true) => cookie,
        (_, false) => {
            Form { outcome: outcome(false), fields: Vec::new(), ..form }.seal(&visit.keys, visit.now).0
        }
    };
    with_cookie(see_other(&login_at(&path)), &cookie)
}
