//! The HTML of the page of a link that starts a Template.

use maud::{Markup, html};

use super::model::New;
use crate::api::shown::shown;
use crate::controllers::dashboard::courses::view::course;
use crate::controllers::dashboard::home::templates::{description, start};
use crate::controllers::dashboard::ui::layout;
use crate::controllers::dashboard::ui::view::View;

/// Renders the page.
pub fn new(view: &View<'_>, new: &New) -> Markup {
    let texts = view.texts();
    let title = match new {
        New::Offer(offer, _) => texts.start_it.fill(&[("name", &offer.title)]),
        New::Join(course) => texts.join_first.fill(&[("course", &course.title)]),
    };
    let content = html! {
        p.back { a href="/" { (texts.home) } }
        h1 { (shown(&title)) }
        @match new {
            New::Offer(offer, of_course) => article.alone {
                p.soft { (texts.course) ": " (shown(of_course)) }
                (description(view, offer))
                (start(view, "0", offer, true))
            },
            New::Join(of) => {
                p { (texts.join_first_hint) }
                ul.cards { li { (course(view, of, 2)) } }
            },
        }
    };
    layout::page(view, &title, &Markup::default(), &content)
}
