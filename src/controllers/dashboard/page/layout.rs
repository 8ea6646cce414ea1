//! The frame of all pages: head, navigation, notices, the part that is fetched again when something changes, and the foot.

use maud::{DOCTYPE, Markup, html};

use super::links;
use super::time;
use super::view::{Live, Notice, View};
use super::words::Language;
use crate::api::shown::{message, shown};

/// The settings of htmx: its extensions; that a live change closes no part that a user has opened; that it adds no styles; that a page
/// stays as it is while it has to wait.
const HTMX: &str = r#"{"extensions":"hx-csp,sse","includeIndicatorCSS":false,"history":false,"morphIgnore":["data-htmx-powered","open"],"noSwap":[204,304,429,503]}"#;

/// A page with this title and content. `announced` is what a screen reader is told when it changes.
pub fn page(view: &View<'_>, title: &str, announced: &Markup, content: &Markup) -> Markup {
    let live = (view.live == Live::On).then_some("refresh from:body throttle:500ms");
    html! {
        (DOCTYPE)
        html lang=(view.language.code()) {
            (head(view, title))
            body {
                a.skip href="#content" { (view.words().skip) }
                (header(view))
                (notices(view))
                @if live.is_some() { div hx-sse:connect=(view.events) hx-nonce=(view.nonce) {} }
                main #content tabindex="-1" hx-get=[live.map(|_| view.path)] hx-trigger=[live] hx-select=[live.map(|_| "#content")]
                    hx-swap=[live.map(|_| "outerMorph")] hx-nonce=(view.nonce) {
                    p.unseen #changes role="status" aria-live="polite" { (announced) }
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
            title { (shown(title)) " – CrownLabs" }
            link rel="stylesheet" href=(view.style);
            @if view.live == Live::On {
                meta name="htmx-config" content=(HTMX);
                @for script in view.scripts { script src=(script) nonce=(view.nonce) defer {} }
            }
        }
    }
}

fn header(view: &View<'_>) -> Markup {
    let words = view.words();
    let pages = [("/", words.home), ("/courses", words.courses), ("/account", words.account)];
    html! {
        header {
            p.brand { a href="/" { "CrownLabs" } }
            @if !view.user.is_empty() {
                nav aria-label=(words.pages) {
                    ul {
                        @for (path, name) in pages {
                            li { a href=(path) aria-current=[(view.path == path).then_some("page")] { (name) } }
                        }
                    }
                }
                div.person {
                    span { (shown(view.user)) }
                    form method="post" action="/logout" { button.plain type="submit" { (words.log_out) } }
                }
            }
        }
    }
}

/// What has happened, and what is not as it should be.
fn notices(view: &View<'_>) -> Markup {
    let words = view.words();
    html! {
        @if let Some(notice) = view.notice {
            @match notice {
                Notice::Done(done) => div.notice.done role="status" { p { ((words.done)(*done)) } },
                Notice::Failed(text) => div.notice.failed role="alert" { p { (message(text)) } },
            }
        }
        @if let Some(old) = view.old {
            div.notice.failed role="alert" { p { (words.old) " " (time::ago(view, old)) ". " (reload(view)) } }
        }
        @match view.live {
            Live::On => {
                div.notice #not-live role="status" hidden { p { (words.not_live) " " (reload(view)) } }
                noscript { div.notice role="status" { p { (words.no_scripts) " " (reload(view)) } } }
            },
            Live::Absent => div.notice role="status" { p { (words.live_absent) " " (reload(view)) } },
            Live::Full => div.notice role="status" { p { (words.live_full) " " (reload(view)) } },
            Live::Never => {},
        }
    }
}

fn reload(view: &View<'_>) -> Markup {
    html! { a href=(view.path) { (view.words().reload) } }
}

fn footer(view: &View<'_>) -> Markup {
    let words = view.words();
    let others = view.languages.iter().filter(|language| **language != view.language);
    let others: Vec<&Language> = others.collect();
    html! {
        footer {
            @if let Some(help) = links::web(view.help) { p { a href=(help) rel="noopener noreferrer" { (words.help) } } }
            @if !others.is_empty() {
                nav aria-label=(words.languages) {
                    ul {
                        @for language in others {
                            @let code = language.code();
                            li { a href={ (view.path) "?lang=" (code) } lang=(code) hreflang=(code) { (language.name()) } }
                        }
                    }
                }
            }
        }
    }
}
