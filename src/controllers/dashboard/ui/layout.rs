//! The frame of all pages: head, navigation, notices, the content that updates replace, and footer.

use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};

use super::view::{Live, Notice, View};
use super::{links, time};
use crate::api::shown::{message, shown};
use crate::config::Language;
use crate::controllers::dashboard::http::assets;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::texts::texts as in_language;

/// The settings of htmx: the extensions are enabled, no styles are added, updates do not close elements that the user
/// has opened, and error responses that ask the browser to wait do not replace the content.
const HTMX: &str = r#"{"extensions":"hx-csp,sse","includeIndicatorCSS":false,"history":false,"morphIgnore":["data-htmx-powered","open"],"noSwap":[204,304,429,502,503,504]}"#;

/// The events that update the content: a change, which the stream sends, and the end of a wait after an error.
const UPDATES: &str = "refresh from:body throttle:500ms, retry";
/// The events that open the stream, unless it is open or being opened.
const OPENS: &str = "load, retry";

/// Renders a page. A screen reader reads the parts of `announced` that change: elements with ids, by which an update
/// finds them, and with `aria-atomic="true"`.
pub fn page(view: &View<'_>, title: &str, announced: &Markup, content: &Markup) -> Markup {
    let live = (view.live == Live::On).then_some(UPDATES);
    let own = live.map(|_| view.own_path());
    html! {
        (DOCTYPE)
        html lang=(view.language.code()) {
            (head(view, title))
            body {
                a.skip href="#content" { (view.texts().skip) }
                (header(view))
                (notices(view, content))
                @if live.is_some() {
                    div #stream hx-sse:connect=(view.events) hx-trigger=(OPENS) hx-sync="drop" hx-swap="none"
                        hx-nonce=(view.nonce) {}
                }
                main #content tabindex="-1" hx-get=[own] hx-trigger=[live] hx-select=[live.map(|_| "#content")]
                    hx-swap=[live.map(|_| "outerMorph")] hx-nonce=(view.nonce) {
                    p.unseen #changes role="status" aria-live="polite" aria-atomic="false" { (announced) }
                    @if let Some(since) = view.old { (old(view, since)) }
                    (content)
                }
                (footer(view))
            }
        }
    }
}

fn head(view: &View<'_>, title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="referrer" content="same-origin";
            title {
                @if matches!(view.notice, Some(Notice::Failed(_))) { (view.texts().error) ": " }
                (shown(title)) " – " (shown(&view.brand.name))
            }
            link rel="icon" href=(view.brand.logo().unwrap_or(assets::icon()));
            link rel="stylesheet" href=(view.style);
            @if let Some(style) = view.brand.style() { link rel="stylesheet" href=(style); }
            @if view.live == Live::On { meta name="htmx-config" content=(HTMX); }
            @for script in view.scripts { script src=(script) nonce=(view.nonce) defer {} }
        }
    }
}

fn header(view: &View<'_>) -> Markup {
    let texts = view.texts();
    let files = view.has_files.then_some((paths::FILES, &texts.my_files));
    let pages = [(paths::HOME, &texts.home), (paths::COURSES, &texts.courses)];
    let pages = pages.into_iter().chain(files).chain([(paths::ACCOUNT, &texts.account)]);
    html! {
        header {
            p.brand {
                a href="/" {
                    @if let Some(logo) = view.brand.logo() { img src=(logo) alt="" height="32"; }
                    (shown(&view.brand.name))
                }
            }
            @if !view.user.is_empty() {
                nav aria-label=(texts.pages) {
                    ul {
                        @for (path, name) in pages {
                            li { a href=(path) aria-current=[(view.path == path).then_some("page")] { (name) } }
                        }
                        @if view.is_administrator {
                            li { a href=(paths::ADMIN) aria-current=[administers(view.path)] { (texts.admin.heading) } }
                        }
                    }
                }
                div.person {
                    span { (shown(view.user)) }
                    form method="post" action="/logout" { button.plain type="submit" { (texts.log_out) } }
                }
            }
        }
    }
}

/// Returns the value of `aria-current` of the link to the pages of administrators.
fn administers(path: &str) -> Option<&'static str> {
    match path.strip_prefix(paths::ADMIN)? {
        "" => Some("page"),
        below => below.starts_with('/').then_some("true"),
    }
}

/// The notices above the content.
fn notices(view: &View<'_>, content: &Markup) -> Markup {
    let texts = view.texts();
    html! {
        @if let Some(notice) = view.notice {
            @match notice {
                Notice::Done(text) => div.notice.done role="status" { p { (message(text)) } },
                Notice::Failed(text) => { (summary(view, text, content)) },
            }
        }
        @match view.live {
            Live::On => {
                div.notice #silent role="status" hidden { p { (texts.silent) } }
                div.notice #not-live role="status" hidden { p { (texts.not_live) " " (reload(view)) } }
                noscript { div.notice role="status" { p { (texts.no_scripts) " " (reload(view)) } } }
            },
            Live::Absent => div.notice role="status" { p { (texts.live_absent) " " (reload(view)) } },
            Live::Full => div.notice role="status" { p { (texts.live_full) " " (reload(view)) } },
            Live::Never => {},
        }
    }
}

/// The notice that the content is old. It is a part of the content, so an update removes it.
fn old(view: &View<'_>, since: Timestamp) -> Markup {
    html! {
        div.notice.failed #old role="alert" {
            p { (view.texts().old) " " (time::ago(view, since)) ". " (reload(view)) }
        }
    }
}

/// The error of a form, which has the focus when the page is loaded, with a link to the invalid field.
fn summary(view: &View<'_>, text: &str, content: &Markup) -> Markup {
    let id = view.typed.and_then(|typed| typed.wrong).map(|(_, id)| id);
    let id = id.filter(|id| content.0.contains(&format!("id=\"{id}\"")));
    html! {
        div.notice.failed role="alert" tabindex="-1" autofocus {
            p { (message(text)) }
            @if let Some(id) = id { p { a href={ "#" (id) } { (view.texts().to_field) } } }
        }
    }
}

fn reload(view: &View<'_>) -> Markup {
    html! { a href=(view.own_path()) { (view.texts().reload) } }
}

fn footer(view: &View<'_>) -> Markup {
    let texts = view.texts();
    let others = view.languages.iter().filter(|language| **language != view.language);
    let others: Vec<&Language> = others.collect();
    html! {
        footer {
            @match links::web(view.help) {
                Some(help) => p { a href=(help) rel="noopener noreferrer" { (texts.help) } },
                None => p { a href=(paths::HELP) { (texts.help) } },
            }
            @if !view.brand.contact.is_empty() {
                p { (texts.contact) ": " a href={ "mailto:" (view.brand.contact) } { (view.brand.contact) } }
            }
            @if !others.is_empty() {
                nav aria-label=(texts.languages) {
                    ul {
                        @for language in others {
                            @let code = language.code();
                            li { a href={ (view.path) "?lang=" (code) } lang=(code) hreflang=(code) { (in_language(*language).language) } }
                        }
                    }
                }
            }
        }
    }
}
