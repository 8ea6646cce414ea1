//! The terminal of a machine in the browser.
//!
//! | file | content |
//! |---|---|
//! | `view.rs` | the page |
//! | `web_ssh.rs` | the connection to web SSH, with the identity of the user in its first message |
//! | `relay.rs` | the messages between the page and web SSH |
//!
//! Web SSH decides who gets a terminal. The page has no token: the dashboard sends it to web SSH.

mod relay;
mod view;
pub mod web_ssh;

use axum::extract::{Path, RawQuery};
use axum::response::Response;
use hyper::upgrade::Upgraded;
use tracing::warn;

use self::relay::relay;
use self::view::Terminal;
use self::web_ssh::Asked;
use super::http::fields::Fields;
use super::http::socket::{End, Socket, close, socket as socket_on};
use super::page::PageRequest;
use super::page_socket::{Life, SocketRequest};
use super::paths;
use super::student::Student;
use super::student::read::OneMachine;
use super::ui::state::State;

/// The namespace and the name of a machine, and the name of its environment.
type Names = (String, String, String);

/// Serves the page.
pub async fn page(request: PageRequest, Path((namespace, name, environment)): Path<Names>) -> Response {
    let none = || request.user.context.state(&request.user.user.name, &State::NotFound);
    let (app, context) = (&request.app, &request.user.context);
    let Some(key) = paths::machine(&namespace, &name) else { return none() };
    if app.web_ssh.is_none() {
        return none();
    }
    if let Some(machine) = app.shared.machine(&request.user.user.name, &key, context.now) {
        let terminal = Terminal::shared(&machine, &environment);
        return request.answer_terminal(|view| view::terminal(view, &terminal));
    }
    let read = request.read(async |reads| reads.machine(&key).await.map(Box::new)).await;
    let OneMachine { instance, own, .. } = match read {
        Ok(machine) => *machine,
        Err(error) => return request.failed(&error),
    };
    let student = Student::new(&own.known, &app.settings, &own.rules, None);
    let view = context.view(&context.path, &[]);
    match Terminal::of(&view, &student, &instance, &environment) {
        Some(terminal) => request.answer_terminal(|view| view::terminal(view, &terminal)),
        None => none(),
    }
}

/// Serves the WebSocket of the page. The parameters `cols` and `rows` are the size of the terminal.
pub async fn socket(
    Path((namespace, name, environment)): Path<Names>,
    RawQuery(query): RawQuery,
    request: SocketRequest,
) -> Response {
    let query = Fields::parse(query.unwrap_or_default().as_bytes());
    let size = |name: &str, default: u16| {
        query.get(name).parse::<u16>().ok().filter(|size| *size > 0).unwrap_or(default)
    };
    let (columns, rows) = (size("cols", 80), size("rows", 24));
    let asked = Asked { namespace, name, environment, columns, rows };
    request.open("", |connection, life| serve(connection, life, asked))
}

/// Serves a terminal until its end, which the page learns.
async fn serve(connection: Upgraded, life: Life, asked: Asked) {
    let mut browser = socket_on(connection, relay::LONGEST).await;
    let end = tokio::select! {
        end = run(&mut browser, &life, &asked) => end,
        end = life.over() => end,
    };
    close(&mut browser, end).await;
}

async fn run(browser: &mut Socket, life: &Life, asked: &Asked) -> End {
    let Some(web_ssh) = &life.app.web_ssh else { return End::Away };
    let machine = match life.app.users.client.passed(&life.user.credential).await {
        Ok(identity) => web_ssh.open(asked, identity).await,
        Err(error) => Err(error.into()),
    };
    match machine {
        Ok(mut machine) => relay(browser, &mut machine).await,
        Err(error) => {
            warn!(user = life.user.name, error = format!("{error:#}"), "a terminal cannot be opened");
            End::Away
        }
    }
}
