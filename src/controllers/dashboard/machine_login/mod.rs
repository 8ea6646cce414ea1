//! The login to a machine at its own host, see [`machine_login`](crate::controllers::shared::machine_login): sends the
//! user back with a code that only the host of that machine accepts.
//!
//! | `rd` | answer |
//! |---|---|
//! | the address of a machine | a redirect to the exchange at its host, with a new code |
//! | the exchange with a code, to which ingress-nginx has added the cookie | a redirect to the page of the code |
//! | anything else | a page that says so |

mod attempts;
mod destination;

use axum::response::Response;
use http::{HeaderMap, StatusCode};

use self::attempts::Attempts;
use self::destination::Destination;
use super::http::context::Context;
use super::http::response::{see_other, text, with_cookie};
use super::paths;
use super::session::nonce;
use super::ui::state::State;
use super::user::CurrentUser;
use crate::controllers::shared::machine_login::{CODE, Code, EXCHANGE};

/// Logs the user in to a machine.
pub async fn enter(context: Context, user: Result<CurrentUser, Response>, headers: HeaderMap) -> Response {
    let (app, keys) = (&context.app, &context.keys);
    let address = context.query.get("rd");
    let Some(to) = Destination::parse(address, &app.settings.machines, &app.config.public_url) else {
        return context.state("", &State::NoMachine);
    };
    if let Some(code) = to.code() {
        return match Code::open(keys, to.label, &code) {
            Some(code) => see_other(&to.url_of(&code.path)),
            None => context.state("", &State::NoMachine),
        };
    }
    let (user, session) = match (user, &context.session) {
        (Ok(user), Some(session)) => (user, session),
        (Err(answer), _) => return answer,
        (Ok(_), None) => return context.state("", &State::SessionOver),
    };
    let Some(attempts) = Attempts::next(&headers, keys, to.label, context.now) else {
        let answer = context.state(&user.user.name, &State::NoCookie(paths::machine_login(address)));
        return user.answer(with_cookie(answer, &Attempts::ended()));
    };
    let Some(id) = nonce() else {
        return text(StatusCode::SERVICE_UNAVAILABLE, "a random number is missing\n");
    };
    let code = Code {
        id,
        since: context.now.as_second(),
        user: user.user.name.clone(),
        session: session.id.clone(),
        path: to.target.to_owned(),
    };
    let target = format!("{EXCHANGE}?{CODE}={}", code.seal(keys, to.label));
    user.answer(with_cookie(see_other(&to.url_of(&target)), &attempts.cookie(keys)))
}
