//! The handler of all actions: it checks the origin of the form, carries out the action, and redirects to the page that shows the
//! outcome.

use axum::body::Bytes;
use axum::extract::RawPathParams;
use axum::response::Response;
use http::StatusCode;

use super::entry::{Action, Form, Plan};
use super::request::Requests;
use super::result::Outcome;
use crate::controllers::dashboard::app::permit;
use crate::controllers::dashboard::http::context::Context;
use crate::controllers::dashboard::http::csrf::SameOrigin;
use crate::controllers::dashboard::http::fields::Fields;
use crate::controllers::dashboard::http::response::{see_other, with_cookie};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::session::Flash;
use crate::controllers::dashboard::texts::Problem;
use crate::controllers::dashboard::ui::links::{self, login_at};
use crate::controllers::dashboard::user::CurrentUser;

/// Carries out an action.
pub async fn handle(
    action: &'static Action,
    _: SameOrigin,
    context: Context,
    user: Result<CurrentUser, Response>,
    parameters: RawPathParams,
    body: Bytes,
) -> Response {
    let app = &context.app;
    let parameters = parameters.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let form = Form {
        parameters: Fields(parameters),
        fields: Fields::parse(&body),
        drive_template: app.settings.drive_template.as_ref(),
    };
    let page = paths::fill(action.page, |name| links::encoded(form.parameters.get(name)));
    // Several pages have the same forms.
    let page = context.referer.clone().filter(|referer| paths::is_page(referer)).unwrap_or(page);
    let user = match user {
        Ok(user) => user,
        Err(rejection) => {
            // The page shows the form again after the login, or as soon as the user can be determined.
            let is_over = rejection.status() == StatusCode::SEE_OTHER;
            let problem = if is_over { Problem::SessionOver } else { Problem::NotNow };
            let flash = failed(&context, page, problem, String::new(), form.fields);
            let place = if is_over { login_at(&flash.path) } else { flash.path.clone() };
            return with_cookie(see_other(&place), &flash.seal(&context.keys, context.now));
        }
    };
    let requests = Requests { client: &app.users.client, user: &user.user };
    let done = match permit(&app.forms).await {
        Some(_permit) => Box::pin(requests.carry_out(action, &form)).await,
        None => Err(Problem::NotNow.into()),
    };
    let flash = match done {
        Ok(done) => {
            let is_gone = matches!(action.plan, Plan::DeleteInstance);
            let path = if is_gone { paths::HOME.to_owned() } else { page };
            let outcome = Outcome::Done(done.to_owned());
            Flash { path, outcome, message: String::new(), fields: Vec::new(), is_lost: false }
        }
        Err(failure) => {
            let (problem, message) = failure.problem();
            let path = if problem == Problem::Gone { paths::HOME.to_owned() } else { page };
            failed(&context, path, problem, message, form.fields)
        }
    };
    user.answer(with_cookie(see_other(&flash.path), &flash.seal(&context.keys, context.now)))
}

/// The flash message of a form that changed nothing, with the path of the form and its fields.
fn failed(context: &Context, path: String, problem: Problem, message: String, fields: Fields) -> Flash {
    let form = (context.path.clone(), String::new());
    let fields = std::iter::once(form).chain(fields.0).collect();
    Flash { path, outcome: Outcome::Failed(problem), message, fields, is_lost: false }
}
