//! The page of a console.

use maud::{Markup, html};
use serde_json::{Value, json};

use crate::api::Instance;
use crate::api::shown::shown;
use crate::controllers::dashboard::action::entry::Right;
use crate::controllers::dashboard::http::assets;
use crate::controllers::dashboard::http::socket::End;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::student::{CONSOLE, Known, Rights, Settings, Student, title};
use crate::controllers::dashboard::texts::Texts;
use crate::controllers::dashboard::texts::template::Key as _;
use crate::controllers::dashboard::ui::state::State;
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{layout, links};

/// The keys that phones do not have, or that browsers keep: their symbols in X11, their names, and their labels.
const KEYS: [(u32, &str, &str); 7] = [
    (0xff1b, "Escape", "Esc"),
    (0xff09, "Tab", "Tab"),
    (0xff0d, "Enter", "↵"),
    (0xff51, "ArrowLeft", "←"),
    (0xff52, "ArrowUp", "↑"),
    (0xff54, "ArrowDown", "↓"),
    (0xff53, "ArrowRight", "→"),
];
/// The longest text of the clipboard, in characters.
const LONGEST: usize = 65_536;

/// The console of an environment of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Console {
    /// The title of the machine.
    pub title: String,
    /// The name of the environment; empty if the machine has only one.
    pub environment: String,
    /// The page of the machine.
    pub back: String,
    /// The WebSocket.
    pub socket: String,
}

impl Console {
    /// Returns the console of an environment of an Instance.
    ///
    /// # Errors
    /// The page that replaces it, if the Instance has no such virtual machine, or the user may not see its screen.
    pub fn of(
        known: &Known,
        rights: &dyn Rights,
        settings: &Settings,
        instance: &Instance,
        environment: &str,
    ) -> Result<Self, State> {
        let student = Student::new(known, settings, rights, None);
        let (namespace, name) = (instance.namespace(), instance.name());
        let all = &instance.status.environments;
        let found = all.iter().find(|known| &*known.name == environment).ok_or(State::NotFound)?;
        let type_ = student.openings(instance).ways(found).environment_type;
        if type_.is_some_and(|type_| !type_.is_vm()) {
            return Err(State::NotFound);
        }
        if !student.may(&CONSOLE, namespace) {
            let Right { verb, group, resource } = CONSOLE;
            return Err(State::Refused(format!(
                "you cannot {verb} resource \"{resource}\" in API group \"{group}\" in the namespace \"{namespace}\""
            )));
        }
        Ok(Self {
            title: title(instance).to_owned(),
            environment: if all.len() == 1 { String::new() } else { environment.to_owned() },
            back: links::of_machine(paths::MACHINE, namespace, name),
            socket: links::of_environment(paths::CONSOLE_SOCKET, namespace, name, environment),
        })
    }
}

/// Renders the page.
pub fn console(view: &View<'_>, console: &Console) -> Markup {
    let texts = view.texts();
    let title = shown(&console.title);
    let content = html! {
        p.back { a href=(console.back) { (title) } }
        h1 {
            (texts.to_console) ": " (title)
            @if !console.environment.is_empty() { " " span.soft { (shown(&console.environment)) } }
        }
        noscript { div.notice { p { (texts.console.no_scripts) } } }
        @match assets::module("console.js") {
            Some(script) => {
                script type="module" src=(script) nonce=(view.nonce) {}
                (screen(texts, console, view.nonce))
            },
            None => div.notice { p { (texts.console.absent) } },
        }
    };
    let name = format!("{} – {}", texts.to_console, console.title);
    layout::page(view, &name, &Markup::default(), &content)
}

/// The screen with its controls, which the script enables while there is a connection.
fn screen(texts: &Texts, console: &Console, nonce: &str) -> Markup {
    let words = &texts.console;
    html! {
        div #console data-socket=(console.socket) data-texts=(sentences(texts, console)) {
            div.row {
                p #console-state role="status" {}
                div.actions {
                    button.main #console-take-over type="button" hidden { (words.take_over) }
                    button #console-reconnect type="button" hidden { (texts.terminal.again) }
                }
            }
            div.actions {
                button.plain #console-reset type="button" disabled data-needs-screen { "Ctrl-Alt-Del" }
                button.plain #console-full type="button" disabled data-needs-screen { (texts.connect_help.full_screen) }
                span {
                    input #console-scale type="checkbox" checked hx-morph-skip hx-nonce=(nonce);
                    " " label for="console-scale" { (words.scale) }
                }
                span {
                    input #console-view-only type="checkbox" hx-morph-skip hx-nonce=(nonce);
                    " " label for="console-view-only" { (words.view_only) }
                }
            }
            div #console-screen {}
            div.keys role="group" aria-label=(texts.terminal.keys) {
                @for (symbol, code, label) in KEYS {
                    button.plain type="button" disabled data-needs-screen data-key=(symbol) data-code=(code)
                        aria-label=[word(texts, code)] { (label) }
                }
            }
            p.hint #console-leave { (words.leave) }
            p.hint { (words.layout) }
            details.fold {
                summary { (texts.connect_help.clipboard) }
                label for="console-text" { (words.text) }
                p.hint #console-text-hint { (words.text_hint) }
                textarea #console-text rows="4" maxlength=(LONGEST) spellcheck="false" aria-describedby="console-text-hint"
                    hx-morph-skip hx-nonce=(nonce) {}
                div.actions {
                    button type="button" #console-type disabled data-needs-screen { (words.type_it) }
                    button.plain type="button" #console-paste disabled data-needs-screen { (words.paste) }
                }
                p.said #console-said role="status" {}
            }
        }
    }
}

/// Returns the sentences of the script, by their names or by the codes of the socket.
fn sentences(texts: &Texts, console: &Console) -> String {
    let words = &texts.console;
    let mut all = json!({
        "screen": words.screen.fill(&[("name", &shown(&console.title))]),
        "connecting": texts.terminal.connecting,
        "connected": texts.terminal.open,
        "invalid": format!("{} {}", texts.terminal.ended, words.invalid),
        "typed": words.typed,
        "pasted": words.pasted,
        "too_long": words.too_long,
    });
    for end in End::ALL {
        let sentence = texts.ends.of(*end);
        // In these cases, there was no connection.
        let is_whole = matches!(end, End::Taken | End::NoScreen);
        let said = if is_whole { sentence.clone() } else { format!("{} {sentence}", texts.terminal.ended) };
        all[end.code().to_string()] = Value::String(said);
    }
    all.to_string()
}

/// Returns the name of a key whose label is a sign.
fn word<'t>(texts: &'t Texts, code: &str) -> Option<&'t str> {
    let words = &texts.terminal;
    match code {
        "Enter" => Some(&texts.console.enter),
        "ArrowLeft" => Some(&words.left),
        "ArrowUp" => Some(&words.up),
        "ArrowDown" => Some(&words.down),
        "ArrowRight" => Some(&words.right),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Language;
    use crate::controllers::dashboard::tests::fixtures::{Everything, instances, known, settings, view};
    use crate::controllers::dashboard::texts::texts;

    #[test]
    fn a_console_needs_the_environment_and_the_right() {
        let (known, settings) = (known(), settings());
        let mut instance = instances().into_iter().next().expect("an Instance");
        let status = serde_json::from_value(json!([{"name": "main", "phase": "Starting"}]));
        instance.status.environments = status.expect("environments");
        let of = |may: bool, environment: &str| {
            Console::of(&known, &Everything(may), &settings, &instance, environment)
        };
        let console = of(true, "main").expect("a console");
        let path = format!("/machines/{}/{}", instance.namespace(), instance.name());
        assert_eq!((&console.back, console.environment.as_str()), (&path, ""));
        assert_eq!(console.socket, format!("{path}/main/console/socket"));
        assert_eq!(of(true, "other"), Err(State::NotFound));
        let refused = of(false, "main").expect_err("no right");
        assert!(
            matches!(&refused, State::Refused(why) if why.contains("virtualmachineinstances/vnc")),
            "{refused:?}"
        );
    }

    #[test]
    fn the_script_has_a_sentence_for_each_end_in_each_language() {
        let console = Console {
            title: "A \"lab\" <b>".to_owned(),
            environment: "main".to_owned(),
            back: "/".to_owned(),
            socket: "/socket".to_owned(),
        };
        for language in Language::all() {
            let texts = texts(language);
            let all: Value = serde_json::from_str(&sentences(texts, &console)).expect("JSON");
            for end in End::ALL {
                let sentence = all[end.code().to_string()].as_str().expect("a sentence");
                let is_whole = matches!(end, End::Taken | End::NoScreen);
                assert_eq!(sentence.starts_with(&texts.terminal.ended), !is_whole, "{sentence}");
            }
            let page = super::console(&view(language, "/x"), &console).into_string();
            assert!(!page.contains("<b>"), "{page}");
        }
    }
}
