//! The page of the account: keys, quota, `MyDrive`.

mod model;

use maud::{Markup, html};

pub use model::{Account, Drive, Key, entry};

use super::field::{Field, Input, field};
use super::parts::{self, Button};
use super::view::View;
use super::{amounts, layout, links};
use crate::api::shown::{escaped, shown};
use crate::api::usage::Measure;

/// The page of the account.
pub fn account(view: &View<'_>, account: &Account) -> Markup {
    let words = view.words();
    let content = html! {
        h1 { (words.account) }
        section aria-labelledby="person" {
            h2 #person { (words.person) }
            dl {
                dt { (words.name) } dd { (shown(&account.name)) }
                dt { (words.email) } dd { (shown(&account.email)) }
                dt { (words.user_name) } dd { (shown(&account.user)) }
            }
        }
        (keys(view, account))
        section aria-labelledby="quota" {
            h2 #quota { (words.quota) }
            (parts::quota_table(view, words.quota_all, &account.all))
            @for (title, shares) in account.courses.iter().filter(|(_, shares)| !shares.is_empty()) {
                @let title = title.as_deref().unwrap_or(words.personal);
                (parts::quota_table(view, &escaped(&(words.quota_of)(title)), shares))
            }
        }
        (drive(view, &account.drive))
    };
    layout::page(view, words.account, &Markup::default(), &content)
}

fn keys(view: &View<'_>, account: &Account) -> Markup {
    let words = view.words();
    let action = "/account/keys/add";
    let of = Field {
        action,
        name: "key",
        id: "key",
        label: words.key_label,
        hint: words.key_hint,
        value: "",
        input: Input::Lines,
    };
    html! {
        section aria-labelledby="keys" {
            h2 #keys { (words.keys) }
            p.hint { (words.keys_hint) }
            @if account.keys.is_empty() { p.empty { (words.no_keys) } }
            ul.rows { @for of in &account.keys { li { (key(view, account.can_change, of)) } } }
            @if account.can_change {
                form.fields method="post" action=(action) {
                    (field(view, &of))
                    button.main type="submit" { (words.add_key) }
                }
            }
        }
    }
}

fn key(view: &View<'_>, can_change: bool, key: &Key) -> Markup {
    let words = view.words();
    let comment = key.description.as_ref().map_or("", |key| key.comment.as_str());
    let name = if comment.is_empty() { words.key_without_name } else { comment };
    let fields = [("entry", key.entry.as_str())];
    let remove = Button {
        action: "/account/keys/remove",
        label: words.remove,
        about: name,
        class: "",
        fields: &fields,
    };
    html! {
        div.row {
            div {
                @match &key.description {
                    Ok(of) => {
                        p { strong { (shown(name)) } " " span.soft { (shown(&of.kind)) } }
                        p { (words.fingerprint) ": " code { (of.fingerprint) } }
                    },
                    Err(error) => p.error { ((words.key_error)(*error)) },
                }
                @if !key.is_used { p.error { (words.key_unused) } }
            }
            @if can_change { (parts::button(&remove)) }
        }
    }
}

fn drive(view: &View<'_>, drive: &Drive) -> Markup {
    let words = view.words();
    html! {
        section aria-labelledby="drive" {
            h2 #drive { (words.drive) }
            p { (words.drive_hint) @if !drive.size.is_empty() { " " (escaped(&(words.drive_size)(&size(view, &drive.size)))) } }
            @if let Some((namespace, name)) = &drive.machine {
                p { a href=(links::path(&["machines", namespace, name])) { (words.drive_is_open) } }
            } @else if let Some(offer) = &drive.offer {
                div.actions {
                    @match &offer.blocked {
                        None => {
                            @let fields = [("name", offer.instance.as_str())];
                            @let start = Button { action: "/account/drive/start", label: words.drive_open, about: "", class: "main", fields: &fields };
                            (parts::button(&start))
                        },
                        Some(blocked) => { (parts::refused(view, "drive-blocked", words.drive_open, "", blocked)) },
                    }
                }
            }
        }
    }
}

/// A size of the configuration, such as `1Gi`, in words; as it is written if it cannot be read.
fn size(view: &View<'_>, text: &str) -> String {
    let quantity = text.parse().ok();
    quantity.map_or_else(|| text.to_owned(), |size| amounts::amount(view.words(), &Measure::Disk, &size))
}
