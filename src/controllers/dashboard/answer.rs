//! From a request to its answer: whose session it is, which page is shown, or what is changed.

use std::sync::Arc;

use http::{Request, Response, StatusCode};
use hyper::body::Bytes;
use jiff::Timestamp;
use tokio::sync::{Semaphore, watch};
use tracing::warn;

use super::live::Hub;
use super::login::{self, Failed, see_other, with_cookie};
use super::page::{Settings, State, login_at};
use super::route::{Route, page_at};
use super::session::{Keys, LoginAttempt, Session};
use super::users::{NoUser, User, Users};
use super::visit::{self, Installation, PAUSE, Visit};
use super::{assets, guard};
use crate::api::GenericRef;
use crate::api::quota::Rule;
use crate::clients::oidc::Provider;
use crate::config::{Config, DashboardConfig};
use crate::runtime::client::UserClient;
use crate::runtime::error::ApiError;
use crate::runtime::http_server::{Body, text};

/// How many pages that are opened are read at the same time, how many that are open already, and how many forms are carried out.
/// When a course begins, everybody sends a form, which leads to a page: nobody who waits for it waits for the forms of others, or
/// for pages that show something already.
const OPENED: usize = 64;
const OPEN: usize = 16;
const FORMS: usize = 16;

/// What a student is told whose login an administrator has to mend.
const NOT_SET_UP: &str =
    "the login is not set up as it has to be; tell an administrator that the log of the dashboard says why";

/// Answers requests.
pub struct Dashboard {
    pub(super) config: DashboardConfig,
    pub(super) settings: Settings,
    installation: Installation,
    pub(super) users: Users,
    keys: watch::Receiver<Option<Arc<Keys>>>,
    pub(super) hub: Arc<Hub>,
    pub(super) opened: Semaphore,
    pub(super) open: Semaphore,
    pub(super) forms: Semaphore,
}

/// What pages need to know of the configuration.
pub fn settings(config: &Config) -> Settings {
    let (dashboard, tenant) = (&config.controllers.dashboard, &config.controllers.tenant);
    let webhook = &config.server.webhook;
    Settings {
        ssh_host: dashboard.ssh_host.clone(),
        web_ssh: dashboard.web_ssh_url.clone(),
        drive_template: dashboard.drive_template.split_once('/').map(|(of, name)| GenericRef::new(of, name)),
        drive_size: tenant.my_drive.size.to_string(),
        rule: Some(Rule {
            require_enrolment: webhook.require_enrolment,
            personal_workspaces: tenant.personal_workspace.enabled,
        }),
    }
}

/// A user, and the cookie that the browser is to have from now on.
pub(super) struct Present {
    pub(super) user: Arc<User>,
    pub(super) cookie: Option<String>,
}

impl Dashboard {
    /// Answers requests by this configuration.
    pub fn new(
        config: DashboardConfig,
        settings: Settings,
        client: UserClient,
        provider: Provider,
        keys: watch::Receiver<Option<Arc<Keys>>>,
        hub: Arc<Hub>,
    ) -> Self {
        let installation = Installation {
            languages: visit::languages(&config.languages),
            issuer: origin(&config.issuer_url).to_owned(),
            help: config.help_url.clone(),
        };
        let users = Users::new(client, provider, config.identity);
        let [opened, open, forms] = [OPENED, OPEN, FORMS].map(Semaphore::new);
        Self { config, settings, installation, users, keys, hub, opened, open, forms }
    }

    /// The answer to a request.
    pub async fn answer(&self, route: Route, request: &Request<Bytes>) -> Response<Body> {
        match route {
            Route::Health => return text(StatusCode::OK, "ok\n").map(Body::from),
            Route::Asset(path) => return assets::answer(&path).map(Body::from),
            _ => {}
        }
        let keys = self.keys.borrow().clone();
        let Some(visit) = keys.and_then(|keys| Visit::of(request, keys, &self.installation)) else {
            return text(StatusCode::SERVICE_UNAVAILABLE, "there is no key or no random number\n")
                .map(Body::from);
        };
        let answer = match route {
            Route::Events => return self.events(&visit),
            Route::Login => self.login(&visit).await,
            Route::Callback => self.callback(&visit).await,
            Route::Logout => self.logout(&visit).await,
            Route::Page(page) => self.page(&visit, &page).await,
            Route::Act(action) => self.act(&visit, action).await,
            Route::OtherMethod => {
                let mut answer = visit.state("", &State::NotFound);
                *answer.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
                answer
            }
            _ => visit.state("", &State::NotFound),
        };
        answer.map(Body::from)
    }

    async fn login(&self, visit: &Visit<'_>) -> Response<Bytes> {
        let path = Some(visit.query.get("return")).filter(|path| page_at(path).is_some()).unwrap_or("/");
        match login::begin(&self.users, &visit.keys, path).await {
            Ok(answer) => answer,
            Err(failed) => self.failed_login(visit, &failed),
        }
    }

    async fn callback(&self, visit: &Visit<'_>) -> Response<Bytes> {
        match login::finish(&self.users, &visit.keys, visit.headers(), &visit.query).await {
            Ok(answer) => answer,
            Err(failed) => with_cookie(self.failed_login(visit, &failed), &LoginAttempt::ended()),
        }
    }

    fn failed_login(&self, visit: &Visit<'_>, failed: &Failed) -> Response<Bytes> {
        match failed {
            Failed::NoUser(no_user) => self.without_user(visit, no_user),
            failed => visit.state("", &State::LoginFailed(failed.to_string())),
        }
    }

    async fn logout(&self, visit: &Visit<'_>) -> Response<Bytes> {
        if !guard::is_from_own_page(visit.headers(), &self.config.public_url) {
            return visit.state("", &State::NotHere);
        }
        if let Some(session) = Session::read(visit.headers(), &visit.keys) {
            login::end(&self.users, &session).await;
        }
        with_cookie(visit.state("", &State::LoggedOut), &Session::ended())
    }

    /// The user of a request. The error is the answer to a request that has none.
    pub(super) async fn user(&self, visit: &Visit<'_>) -> Result<Present, Response<Bytes>> {
        let Some(session) = Session::read(visit.headers(), &visit.keys) else {
            return Err(to_login(visit));
        };
        if visit.is_by_script() && !session.is_used(visit.now) {
            return Err(visit.state("", &State::SessionOver));
        }
        match self.users.of(&session).await {
            Ok(found) => {
                let visited = session.visit(visit.now).filter(|_| !visit.is_by_script());
                let is_new = visited.is_some() || found.next.is_some();
                let session = visited.unwrap_or(session);
                let refresh_token = found.next.unwrap_or_else(|| session.refresh_token.clone());
                let cookie = is_new.then(|| Session { refresh_token, ..session }.seal(&visit.keys).ok());
                Ok(Present { user: found.user, cookie: cookie.flatten() })
            }
            Err(NoUser::Ended(_)) => Err(with_cookie(to_login(visit), &Session::ended())),
            Err(no_user) => Err(self.without_user(visit, &no_user)),
        }
    }

    /// The answer to a request whose user cannot be told.
    fn without_user(&self, visit: &Visit<'_>, no_user: &NoUser) -> Response<Bytes> {
        let state = match no_user {
            NoUser::Ended(_) => return visit.state("", &State::SessionOver),
            NoUser::IssuerAway(_) => State::LoginAway,
            // What an administrator has to look at is in the log, and says nothing to a student.
            NoUser::NotSetUp(_) => State::LoginFailed(NOT_SET_UP.to_owned()),
            NoUser::Refused(_) => State::IssuerRefused(self.config.issuer_url.clone()),
            NoUser::ApiAway(error) => unread(error, visit.now),
        };
        warn!(error = %no_user, "a user of the dashboard has no token");
        visit.state("", &state)
    }
}

/// The answer to a request without a session.
fn to_login(visit: &Visit<'_>) -> Response<Bytes> {
    if visit.is_by_script() {
        return visit.state("", &State::SessionOver);
    }
    see_other(&login_at(visit.request.uri().path()))
}

/// The page in place of one whose objects cannot be read.
pub(super) fn unread(error: &ApiError, now: Timestamp) -> State {
    match error {
        ApiError::NotFound(_) => State::NotFound,
        ApiError::Forbidden(why) | ApiError::QuotaExceeded(why) | ApiError::Invalid(why) => {
            State::Refused(why.clone())
        }
        ApiError::Conflict(_) | ApiError::AlreadyExists(_) | ApiError::Stale(_) => State::Changed,
        ApiError::Transient { retry_after: Some(after), .. } => State::TooMany(after.as_secs().max(PAUSE)),
        ApiError::TooLong(why) => State::Broken(why.clone()),
        _ => State::Away(now),
    }
}

/// The origin of a URL.
fn origin(url: &str) -> &str {
    let begin = url.find("://").map_or(0, |at| at + 3);
    url[begin..].find('/').map_or(url, |at| &url[..begin + at])
}
