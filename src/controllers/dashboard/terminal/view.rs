//! The page of a terminal.

use maud::{Markup, html};

use crate::api::Instance;
use crate::api::shown::shown;
use crate::controllers::dashboard::http::assets;
use crate::controllers::dashboard::http::socket::End;
use crate::controllers::dashboard::machine::model::{Machine, Part};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::sharing::with_me::SharedMachine;
use crate::controllers::dashboard::student::Student;
use crate::controllers::dashboard::texts::Texts;
use crate::controllers::dashboard::texts::template::Key as _;
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{layout, links, parts};

/// The keys that phones do not have: what they type, and their labels. The script knows the names.
const KEYS: [(&str, &str); 7] = [
    ("escape", "Esc"),
    ("tab", "Tab"),
    ("control", "Ctrl"),
    ("left", "←"),
    ("up", "↑"),
    ("down", "↓"),
    ("right", "→"),
];

/// The terminal of an environment of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terminal {
    /// The title of the machine.
    pub title: String,
    /// The name of the environment; empty if the machine has only one.
    pub environment: String,
    /// The page of the machine, or the first page for a machine of another user that the user cannot see.
    pub back: String,
    /// The WebSocket.
    pub socket: String,
    /// The command of the login by SSH.
    pub command: Option<String>,
    /// Whether the machine runs, as far as the page knows.
    pub is_on: bool,
}

/// Returns the path of the WebSocket of a terminal.
fn socket(namespace: &str, name: &str, environment: &str) -> String {
    links::of_environment(paths::TERMINAL_SOCKET, namespace, name, environment)
}

impl Terminal {
    /// Returns the terminal of an environment of an Instance; `None` if it has no such environment.
    pub fn of(
        view: &View<'_>,
        student: &Student<'_>,
        instance: &Instance,
        environment: &str,
    ) -> Option<Self> {
        let Machine { card, environments, .. } =
            Machine::of(view, student, instance, false, Ok(Vec::new()), None);
        let is_single = environments.len() == 1;
        let part = environments.into_iter().find(|part| part.name == environment)?;
        let is_on = part.terminal.is_some();
        let Part { name, ssh, .. } = part;
        Some(Self {
            back: card.path(paths::MACHINE),
            socket: socket(&card.namespace, &card.name, &name),
            title: card.title,
            environment: if is_single { String::new() } else { name },
            command: ssh.and_then(|ssh| ssh.command),
            is_on,
        })
    }

    /// Returns the terminal of a machine that its owner shares with the user, who may not see more of it.
    pub fn shared(machine: &SharedMachine, environment: &str) -> Self {
        Self {
            title: format!("{} ({})", machine.key.name, machine.owner),
            environment: environment.to_owned(),
            back: paths::HOME.to_owned(),
            socket: socket(&machine.key.namespace, &machine.key.name, environment),
            command: None,
            is_on: true,
        }
    }
}

/// Renders the page.
pub fn terminal(view: &View<'_>, terminal: &Terminal) -> Markup {
    let texts = view.texts();
    let title = shown(&terminal.title);
    let content = html! {
        p.back {
            a href=(terminal.back) { @if terminal.back == paths::HOME { (texts.home) } @else { (title) } }
        }
        h1 {
            (texts.to_terminal) ": " (title)
            @if !terminal.environment.is_empty() { " " span.soft { (shown(&terminal.environment)) } }
        }
        @if !terminal.is_on {
            p.notice { (texts.terminal.off) }
        } @else {
            noscript { div.notice { p { (texts.terminal.no_scripts) } } }
            @match assets::module("terminal.js").zip(assets::module("terminal.css")) {
                Some((script, style)) => {
                    link rel="stylesheet" href=(style);
                    script type="module" src=(script) nonce=(view.nonce) {}
                    (screen(texts, terminal))
                },
                None => div.notice { p { (texts.terminal.absent) } },
            }
        }
        @if let Some(command) = &terminal.command {
            p.hint { (texts.ssh) ": " (parts::copied(view, command, &terminal.title)) }
        }
    };
    let name = format!("{} – {}", texts.to_terminal, terminal.title);
    layout::page(view, &name, &Markup::default(), &content)
}

/// The terminal, its keys and its state. The script shows them.
fn screen(texts: &Texts, terminal: &Terminal) -> Markup {
    let words = &texts.terminal;
    html! {
        div.screen #screen data-socket=(terminal.socket) data-name=(shown(&terminal.title)) data-label=(words.input)
            data-much=(words.much) hidden {}
        div #tools hidden {
            div.keys role="group" aria-label=(words.keys) {
                @for (name, label) in KEYS {
                    button.plain type="button" data-key=(name) aria-label=[word(texts, name)] { (label) }
                }
            }
            div.actions {
                button.plain #copy type="button" { (texts.copy) }
                button.plain #reader type="button" aria-pressed="false" { (words.reader) }
            }
            p.hint { (words.hint) }
        }
        div.ended #ended hidden {
            p #why role="alert" {}
            button.main #again type="button" { (words.again) }
        }
        p.unseen #said role="status" {}
        ul #sentences hidden {
            li data-code="connecting" { (words.connecting) }
            li data-code="open" { (words.open) }
            @for end in End::ALL { li data-code=(end.code()) { (words.ended) " " (texts.ends.of(*end)) } }
        }
    }
}

/// Returns the name of a key whose label is a sign.
fn word<'t>(texts: &'t Texts, name: &str) -> Option<&'t str> {
    let words = &texts.terminal;
    match name {
        "left" => Some(&words.left),
        "up" => Some(&words.up),
        "down" => Some(&words.down),
        "right" => Some(&words.right),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::api::sharing::Access;
    use crate::runtime::ObjectKey;

    #[test]
    fn a_shared_machine_has_a_terminal_and_no_page_of_its_own() {
        let machine = SharedMachine {
            key: ObjectKey::new("tenant-ada", "vm.1"),
            uid: "u".to_owned(),
            owner: "ada".to_owned(),
            course: "tea".to_owned(),
            template: "lab".to_owned(),
            access: Access::View,
            until: Timestamp::UNIX_EPOCH,
        };
        let terminal = Terminal::shared(&machine, "main");
        assert_eq!(terminal.title, "vm.1 (ada)");
        assert_eq!(terminal.socket, "/machines/tenant-ada/vm.1/main/terminal/socket");
        assert_eq!((terminal.back.as_str(), terminal.command), ("/", None));
    }
}
