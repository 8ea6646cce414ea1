//! The HTML of the account page.

use maud::{Markup, html};

use super::actions::{ADD_KEY, REMOVE_KEY};
use super::model::{Account, Key};
use crate::api::shown::{escaped, shown};
use crate::controllers::dashboard::files::view::drive;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::field::{Form, form};
use crate::controllers::dashboard::ui::layout;
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::view::View;

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
        section aria-labelledby="drive" {
            h2 #drive { (texts.drive) }
            p { (drive(view, &account.drive_size)) @if view.has_files { " " a href=(paths::FILES) { (texts.my_files) } } }
        }
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
