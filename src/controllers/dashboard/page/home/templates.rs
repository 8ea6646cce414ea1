//! The Templates of the courses, of which machines are made.

use maud::{Markup, html};

use super::model::{Course, Home, Offer};
use crate::api::shown::{escaped, shown};
use crate::api::usage::Share;
use crate::controllers::dashboard::page::view::View;
use crate::controllers::dashboard::page::{amounts, parts};

/// The part of the page with all Templates.
pub fn section(view: &View<'_>, home: &Home) -> Markup {
    let words = view.words();
    html! {
        section aria-labelledby="new" {
            h2 #new { (words.new_machine) }
            @if home.courses.is_empty() { p.empty { (words.no_courses) " " a href="/courses" { (words.courses) } } }
            @for (number, of) in home.courses.iter().enumerate() { (course(view, number, of)) }
        }
    }
}

fn course(view: &View<'_>, number: usize, course: &Course) -> Markup {
    let words = view.words();
    let title = course.title.as_deref().unwrap_or(words.personal);
    html! {
        h3 { (shown(title)) }
        @if !course.left.is_empty() { p.left { (words.left) ": " (escaped(&left(view, &course.left))) "." } }
        @if course.offers.is_empty() { p.empty { (words.no_templates_here) } }
        ul.cards {
            @for (at, of) in course.offers.iter().enumerate() { li { (offer(view, &format!("{number}-{at}"), of)) } }
        }
    }
}

/// What is left of a quota, in one sentence.
fn left(view: &View<'_>, shares: &[Share]) -> String {
    let words = view.words();
    let one = |share: &Share| Some(amounts::of_limit(words, share, &share.left()?));
    shares.iter().filter_map(one).collect::<Vec<_>>().join(", ")
}

/// A Template.
fn offer(view: &View<'_>, number: &str, offer: &Offer) -> Markup {
    let words = view.words();
    let title = offer.title.as_str();
    let fields = [
        ("name", offer.instance.as_str()),
        ("templateNamespace", offer.namespace.as_str()),
        ("template", offer.name.as_str()),
    ];
    let start = parts::Button {
        action: "/machines",
        label: words.start,
        about: title,
        class: "main",
        fields: &fields,
    };
    html! {
        article aria-labelledby=(parts::id("offer", number)) {
            h4 id=(parts::id("offer", number)) { (shown(title)) }
            @if !offer.description.trim().is_empty() { p.description { (parts::description(&offer.description)) } }
            ul.size {
                @for share in &offer.size { li { (shown(&amounts::named(words, &share.measure, &share.used))) } }
            }
            p.soft { @if offer.is_persistent { (words.keeps_disk) } @else { (words.loses_disk) } "." }
            div.actions {
                @match &offer.blocked {
                    None => { (parts::button(&start)) },
                    Some(blocked) => { (parts::refused(view, &parts::id("offer-blocked", number), words.start, title, blocked)) },
                }
            }
        }
    }
}
