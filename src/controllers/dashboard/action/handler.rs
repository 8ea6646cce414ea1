//! The handler of all actions: it checks the origin of the form, carries out the action, and redirects to the page that shows the
//! outcome.

use axum::body::Bytes;
use axum::extract::RawPathParams;
use axum::response::Response;
use http::StatusCode;

use super::entry::{Action, Form, Plan};
use super::request::Requests;
use super::result::Outcome;
use crate::api::private_key::is_private;
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
    let own = paths::fill(action.page, |name| links::encoded(form.parameters.get(name)));
    let own = if paths::is_page(&own) { own } else { paths::HOME.to_owned() };
    // Several pages have the same forms.
    let page = context.referer.clone().filter(|page| paths::is_page(page)).unwrap_or_else(|| own.clone());
    let user = match user {
        Ok(user) => user,
        Err(rejection) => {
            // The page shows the form again after the login, or as soon as the user can be determined.
            let is_over = rejection.status() == StatusCode::SEE_OTHER;
            let outcome = Outcome::Failed(if is_over { Problem::SessionOver } else { Problem::NotNow });
            let flash = failed(&context, page, outcome, String::new(), form.fields);
            let place = if is_over { login_at(&flash.path) } else { flash.path.clone() };
            let flash = flash.seal(&context.keys, context.now, context.room_for_flash);
            return with_cookie(see_other(&place), &flash);
        }
    };
    let requests = Requests { client: &app.users.client, user: &user.user };
    let done = match permit(&app.forms).await {
        Some(_permit) => Box::pin(requests.carry_out(action, &form)).await,
        None => Err(Problem::NotNow.into()),
    };
    let flash = match done {
        Ok(done) => {
            // The page of a deleted machine, and the page that asks whether to start one, have nothing more to show.
            let is_gone = matches!(action.plan, Plan::DeleteInstance) || action.page == paths::HOME;
            let is_listed = matches!(action.plan, Plan::Create(_) | Plan::Delete(_));
            let path = match (is_gone, is_listed) {
                (true, _) => paths::HOME.to_owned(),
                (false, true) => own,
                (false, false) => page,
            };
            let outcome = Outcome::Done(done.to_owned());
            // The page names a new machine by its title.
            let is_new = matches!(action.plan, Plan::CreateInstance(_));
            let message = if is_new { form.get("name").to_owned() } else { String::new() };
            Flash { path, outcome, message, fields: Vec::new(), is_lost: false, is_shown: false }
        }
        Err(failure) => {
            let (outcome, message) = failure.outcome();
            let is_gone = outcome == Outcome::Failed(Problem::Gone);
            let is_listed = matches!(action.plan, Plan::Create(_) | Plan::Patch(..) | Plan::Delete(_));
            let path = match (is_gone, is_listed) {
                (true, true) => own,
                (true, false) => paths::HOME.to_owned(),
                (false, _) => page,
            };
            failed(&context, path, outcome, message, form.fields)
        }
    };
    let cookie = flash.seal(&context.keys, context.now, context.room_for_flash);
    user.answer(with_cookie(see_other(&flash.path), &cookie))
}

/// The flash message of a form that changed nothing, with the path of the form and its fields.
fn failed(context: &Context, path: String, outcome: Outcome, message: String, fields: Fields) -> Flash {
    let form = (context.path.clone(), String::new());
    let fields = std::iter::once(form).chain(kept(fields)).collect();
    Flash { path, outcome, message, fields, is_lost: false, is_shown: false }
}

/// Returns the fields that the page shows again: all except a private key that was pasted by mistake.
fn kept(fields: Fields) -> impl Iterator<Item = (String, String)> {
    fields.0.into_iter().filter(|(name, value)| !is_private(name) && !is_private(value))
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn a_private_key_is_not_kept_in_any_field() {
        let private = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk";
        let fields =
            [("key", private), ("prettyName", "Lab"), (private, ""), ("other", "ssh-ed25519 nonsense")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let names: Vec<String> = kept(Fields(fields)).map(|(name, _)| name).collect();
        assert_eq!(names, ["prettyName", "other"]);
    }
}
