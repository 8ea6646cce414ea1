//! The HTML of the Templates for new machines.

use maud::{Markup, html};

use super::actions::CREATE;
use super::model::{Course, Home, Offer};
use crate::api::shown::{escaped, shown};
use crate::api::usage::Share;
use crate::controllers::dashboard::ui::parts;
use crate::controllers::dashboard::ui::view::View;

/// The section with all Templates.
pub fn section(view: &View<'_>, home: &Home) -> Markup {
    let texts = view.texts();
    html! {
        section aria-labelledby="new" {
            h2 #new { (texts.new_machine) }
            @if home.courses.is_empty() { p.empty { (texts.no_courses) " " a href="/courses" { (texts.courses) } } }
            @for (number, of) in home.courses.iter().enumerate() { (course(view, number, of)) }
        }
    }
}

fn course(view: &View<'_>, number: usize, course: &Course) -> Markup {
    let texts = view.texts();
    html! {
        h3 { (shown(&course.title)) }
        @if !course.left.is_empty() { p.left { (texts.left) ": " (escaped(&left(view, &course.left))) "." } }
        @if course.offers.is_empty() { p.empty { (texts.no_templates_here) } }
        ul.cards {
            @for (at, of) in course.offers.iter().enumerate() { li { (offer(view, &format!("{number}-{at}"), of)) } }
        }
    }
}

/// Returns the remaining quota, in one sentence.
fn left(view: &View<'_>, shares: &[Share]) -> String {
    let texts = view.texts();
    shares.iter().filter_map(|share| texts.remaining(share)).collect::<Vec<_>>().join(", ")
}

/// A Template.
fn offer(view: &View<'_>, number: &str, offer: &Offer) -> Markup {
    let texts = view.texts();
    let title = offer.title.as_str();
    let fields = [
        ("name", offer.instance.as_str()),
        ("templateNamespace", offer.namespace.as_str()),
        ("template", offer.name.as_str()),
    ];
    let start = parts::Button {
        action: &CREATE,
        path: CREATE.path,
        about: title,
        key: number,
        fields: &fields,
        warning: offer.warning.as_ref(),
    };
    html! {
        article aria-labelledby=(parts::id("offer", number)) {
            h4 id=(parts::id("offer", number)) { (shown(title)) }
            @if !offer.description.trim().is_empty() { p.description { (parts::description(&offer.description)) } }
            ul.size {
                @for share in &offer.size { li { (shown(&texts.named(&share.measure, &share.used))) } }
            }
            p.soft { @if offer.is_persistent { (texts.keeps_disk) } @else { (texts.loses_disk) } "." }
            div.actions {
                @match &offer.blocked {
                    None => { (parts::button(view, &start)) },
                    Some(blocked) => { (parts::refused(view, &start, blocked)) },
                }
            }
        }
    }
}
