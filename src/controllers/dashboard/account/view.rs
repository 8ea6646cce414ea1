//! The HTML of the account page.

use maud::{Markup, html};

use super::actions::{ADD_KEY, OPEN_DRIVE, REMOVE_KEY};
use super::model::{Account, Drive, Key};
use crate::api::shown::{escaped, shown};
use crate::api::usage::Measure;
use crate::controllers::dashboard::home::model::Offer;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::field::{Form, form};
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{layout, links};

/// Renders the page.
pub fn account(view: &View<'_>, account: &Account) -> Markup {
    let texts = view.texts();
    let content = html! {
        h1 { (texts.account) }
        section aria-labelledby="person" {
            h2 #person { (texts.person) }
            dl {
                dt { (texts.name) } dd { (shown(&account.name)) }
                dt { (texts.email) } dd { (shown(&account.email)) }
                dt { (texts.user_name) } dd { (shown(&account.user)) }
            }
        }
        (keys(view, account))
        section aria-labelledby="quota" {
            h2 #quota { (texts.quota) }
            (parts::quota_table(view, &texts.quota_all, &account.all))
            @for (title, shares) in account.courses.iter().filter(|(_, shares)| !shares.is_empty()) {
                (parts::quota_table(view, &escaped(&texts.quota_of.fill(&[("course", title)])), shares))
            }
        }
        (drive(view, &account.drive))
    };
    layout::page(view, &texts.account, &Markup::default(), &content)
}

fn keys(view: &View<'_>, account: &Account) -> Markup {
    let texts = view.texts();
    let count = account.keys.len().to_string();
    let hidden = [("count", count.as_str())];
    let add = Form { action: &ADD_KEY, path: ADD_KEY.path, hidden: &hidden, values: &[], is_main: true };
    html! {
        section aria-labelledby="keys" {
            h2 #keys { (texts.keys) }
            p.hint { (texts.keys_hint) }
            @if account.keys.is_empty() { p.empty { (texts.no_keys) } }
            ul.rows { @for of in &account.keys { li { (key(view, of)) } } }
            @if account.can_add { (form(view, &add)) }
        }
    }
}

fn key(view: &View<'_>, key: &Key) -> Markup {
    let texts = view.texts();
    let comment = key.description.as_ref().map_or("", |key| key.comment.as_str());
    let name = if comment.is_empty() { texts.key_without_name.as_str() } else { comment };
    let same = key.same.to_string();
    let remove = Button {
        action: &REMOVE_KEY,
        path: REMOVE_KEY.path,
        about: name,
        key: &key.entry,
        fields: &[("entry", &key.entry), ("same", &same)],
        warning: None,
    };
    html! {
        div.row {
            div {
                @match &key.description {
                    Ok(of) => {
                        p { strong { (shown(name)) } " " span.soft { (shown(&of.kind)) } }
                        p { (texts.fingerprint) ": " code { (of.fingerprint) } }
                    },
                    Err(error) => p.error { (texts.problems.of((*error).into())) },
                }
                @if !key.is_used { p.error { (texts.key_unused) } }
            }
            @if key.can_remove { (parts::button(view, &remove)) }
        }
    }
}

fn drive(view: &View<'_>, drive: &Drive) -> Markup {
    let texts = view.texts();
    html! {
        section aria-labelledby="drive" {
            h2 #drive { (texts.drive) }
            p { (texts.drive_hint) @if !drive.size.is_empty() { " " (escaped(&texts.drive_size.fill(&[("size", &size(view, &drive.size))]))) } }
            @if let Some((namespace, name)) = &drive.machine {
                p { a href=(links::of_machine(paths::MACHINE, namespace, name)) { (texts.drive_is_open) } }
            } @else if let Some(offer) = &drive.offer {
                div.actions { (open(view, offer)) }
            }
        }
    }
}

/// The button that creates the machine that opens `MyDrive`.
fn open(view: &View<'_>, offer: &Offer) -> Markup {
    let button = Button {
        action: &OPEN_DRIVE,
        path: OPEN_DRIVE.path,
        about: "",
        key: "drive",
        fields: &[("name", &offer.instance)],
        warning: offer.warning.as_ref(),
    };
    match &offer.blocked {
        None => parts::button(view, &button),
        Some(blocked) => parts::refused(view, &button, blocked),
    }
}

/// Returns a size from the configuration, such as `1Gi`, in words, or unchanged if it is invalid.
fn size(view: &View<'_>, text: &str) -> String {
    let quantity = text.parse().ok();
    quantity.map_or_else(|| text.to_owned(), |size| view.texts().quantity(&Measure::Disk, &size))
}
