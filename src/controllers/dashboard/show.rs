//! Pages: what is read for each, and how it is shown; and the streams that have it read anew.

use std::sync::Arc;

use http::{Response, StatusCode};
use hyper::body::Bytes;
use jiff::Timestamp;

use super::answer::{Dashboard, unread};
use super::assets;
use super::live::{self, Since, Topic};
use super::login::{see_other, with_cookie};
use super::outcome::{self, Outcome};
use super::page::{
    self, Account, Courses, Home, Live, Machine, Notice, Settings, State, Student, Typed, View,
};
use super::read::{OneMachine, Own, Reading};
use super::route::Page;
use super::session::{self, Form, Keys, Session};
use super::users::User;
use super::visit::{self, Visit};
use crate::runtime::error::ApiError;
use crate::runtime::http_server::{Body, text};

/// The purpose of the addresses of streams.
const EVENTS: &str = "events";

impl Dashboard {
    /// The answer to a request for a page.
    pub async fn page(&self, visit: &Visit<'_>, page: &Page) -> Response<Bytes> {
        if let Some(language) = page::Language::of(visit.query.get("lang")) {
            let cookie = session::plain(visit::LANGUAGE, language.code());
            return with_cookie(see_other(&page.path()), &cookie);
        }
        let present = match self.user(visit).await {
            Ok(present) => present,
            Err(answer) => return answer,
        };
        let answer = self.page_of(visit, page, &present.user).await;
        match &present.cookie {
            Some(cookie) => with_cookie(answer, cookie),
            None => answer,
        }
    }

    /// A page with what its user may see.
    async fn page_of(&self, visit: &Visit<'_>, page: &Page, user: &User) -> Response<Bytes> {
        let turns = if visit.is_by_script() { &self.open } else { &self.opened };
        // It is never closed.
        let turn = turns.acquire().await.ok();
        // While a page waits, it takes no room for what is read then.
        let read = Box::pin(read(&Reading { users: &self.users, user }, page)).await;
        drop(turn);
        let (content, old) = match read {
            Ok(content) => {
                if let (Content::Own(own), Page::Home) = (&content, page) {
                    self.users.keep(user, visit.now, own);
                }
                (content, None)
            }
            Err(error) => {
                let state = unread(&error, visit.now);
                // What was seen last is shown again, if there is something. An open page stays as it is by itself.
                let is_shown =
                    *page == Page::Home && matches!(state, State::Away(_)) && !visit.is_by_script();
                match self.users.kept(user).filter(|_| is_shown) {
                    Some((since, own)) => (Content::Own(own), Some(since)),
                    None => return visit.state(&user.name, &state),
                }
            }
        };
        self.show(visit, page, user, &content, old)
    }

    fn show(
        &self,
        visit: &Visit<'_>,
        page: &Page,
        user: &User,
        content: &Content,
        old: Option<Timestamp>,
    ) -> Response<Bytes> {
        let path = page.path();
        let form = Form::read(visit.headers(), &visit.keys, visit.now, &path);
        let notice = form.as_ref().and_then(|form| notice(visit, form));
        let typed = form.as_ref().and_then(|form| form.fields.split_first());
        let own = content.own();
        let events = events(&visit.keys, self.hub.since(visit.now), &own.topics);
        let scripts = assets::scripts();
        let view = View {
            user: &user.name,
            events: &events,
            live: self.live(visit),
            notice: notice.as_ref(),
            typed: typed.map(|((action, _), values)| Typed { action, values, error: None }),
            old,
            ..visit.view(&path, &scripts)
        };
        let student = Student::new(&own.known, &self.settings, &own.rules, old);
        let shown = match (content, page) {
            (Content::Machine(machine), _) => self.machine(&view, machine),
            _ if let Some(state) = own.lacks(page) => page::state(&view, &state),
            (_, Page::Courses) => page::courses(&view, &Courses::of(&student)),
            (_, Page::Account) => page::account(&view, &Account::of(&view, &student)),
            _ => page::home(&view, &Home::of(&view, &student)),
        };
        let answer = visit.page(StatusCode::OK, shown);
        // A part that a script asks for leaves what was typed to the page, and a page with old content to the next one.
        let is_shown = form.is_some() && !visit.is_by_script() && old.is_none();
        if is_shown { with_cookie(answer, &Form::ended()) } else { answer }
    }

    fn machine(&self, view: &View<'_>, machine: &OneMachine) -> maud::Markup {
        let OneMachine { instance, is_template_gone, own, is_own, warnings } = machine;
        // Of the quotas of somebody else, too little is known.
        let settings = Settings { rule: self.settings.rule.filter(|_| *is_own), ..self.settings.clone() };
        let student = Student::new(&own.known, &settings, &own.rules, None);
        page::machine(view, &Machine::of(view, &student, instance, *is_template_gone, warnings.clone(), None))
    }

    /// Whether a page can show changes at once: one that asks for itself anew already does.
    fn live(&self, visit: &Visit<'_>) -> Live {
        match assets::are_pages_live() {
            false => Live::Absent,
            true if self.hub.is_full() && !visit.is_by_script() => Live::Full,
            true => Live::On,
        }
    }

    /// The stream of the changes of a page. Its address is one that the dashboard has written into a page, after its user had read
    /// what is on it. It neither needs a token nor asks for one: what has changed, it does not say.
    pub fn events(&self, visit: &Visit<'_>) -> Response<Body> {
        let refused = |code, why: &'static str| text(code, why).map(Body::from);
        if Session::read(visit.headers(), &visit.keys).is_none() {
            return refused(StatusCode::UNAUTHORIZED, "log in\n");
        }
        let sealed = session::unsealed(&visit.keys, EVENTS, visit.query.get("on"));
        let Some((since, topics)) = sealed.as_deref().and_then(listened) else {
            return refused(StatusCode::FORBIDDEN, "this is no address of a page\n");
        };
        match self.hub.listen(topics, since) {
            Some(listener) => live::stream(listener),
            None => refused(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open\n"),
        }
    }
}

/// Reads what a page shows.
async fn read(reading: &Reading<'_>, page: &Page) -> Result<Content, ApiError> {
    match page {
        Page::Machine(key) => reading.machine(key).await.map(|machine| Content::Machine(Box::new(machine))),
        Page::Courses => reading.courses().await.map(|own| Content::Own(Arc::new(own))),
        Page::Home | Page::Account => reading.own().await.map(|own| Content::Own(Arc::new(own))),
    }
}

/// What a page shows.
enum Content {
    Own(Arc<Own>),
    Machine(Box<OneMachine>),
}

impl Content {
    /// The objects of its user.
    fn own(&self) -> &Own {
        match self {
            Self::Own(own) => own,
            Self::Machine(machine) => &machine.own,
        }
    }
}

/// The address of the stream of the changes of these, of which a page shows what they were then.
fn events(keys: &Keys, since: Since, topics: &[Topic]) -> String {
    let since = format!("{} {}", since.at.as_millisecond(), since.replica);
    let lines: Vec<String> = std::iter::once(since).chain(topics.iter().map(ToString::to_string)).collect();
    format!("/events?on={}", session::sealed(keys, EVENTS, &lines.join("\n")))
}

/// Since when what is listened to by such an address.
fn listened(text: &str) -> Option<(Since, Vec<Topic>)> {
    let (since, topics) = text.split_once('\n')?;
    let (at, replica) = since.split_once(' ')?;
    let at = Timestamp::from_millisecond(at.parse().ok()?).ok()?;
    Some((
        Since { at, replica: replica.parse().ok()? },
        topics.lines().filter_map(|line| line.parse().ok()).collect(),
    ))
}

/// What is said above a page about what was sent from it.
fn notice(visit: &Visit<'_>, form: &Form) -> Option<Notice> {
    Some(match Outcome::of_form(form)? {
        Outcome::Done(done) => Notice::Done(done),
        failed => {
            let (sentence, message) = (failed.sentence(visit.language()), form.message.as_str());
            let lost = if form.is_lost { outcome::lost(visit.language()) } else { "" };
            let said = [sentence, message, lost].into_iter().filter(|part| !part.is_empty());
            Notice::Failed(said.collect::<Vec<_>>().join(" "))
        }
    })
}
