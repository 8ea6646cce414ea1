//! The HTML of the parts of a machine that its card and its page share: its state, its deadline, and the buttons of its actions.

use maud::{Markup, html};

use super::actions::{MachineAction, Offer};
use super::card::Card;
use crate::api::why::{Next, Step};
use crate::controllers::dashboard::action::entry::Place;
use crate::controllers::dashboard::texts::Ending;
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::time;
use crate::controllers::dashboard::ui::view::View;

/// Returns why a machine is in its state, in one sentence.
pub fn because(view: &View<'_>, card: &Card) -> String {
    let cause = card.cause.as_ref().map(|cause| parts::sentence(view, cause));
    cause.unwrap_or_else(|| view.texts().because.of(card.standing).clone())
}

/// The next step of a machine, with its time.
pub fn next(view: &View<'_>, step: &Step) -> Markup {
    let texts = view.texts();
    let Step { because, end, next, .. } = step;
    let ending = Ending::of(*end, *because);
    html! {
        @match next {
            Next::Warning(at) => p.soft { (texts.warning_due.of(ending)) " (" (time::ago(view, at.0)) ")." },
            Next::End(at) => p.deadline { strong { (texts.until.of(ending)) " " (time::due(view, at.0)) "." } },
        }
    }
}

/// The buttons of the actions on a machine.
pub fn actions(view: &View<'_>, card: &Card) -> Markup {
    let title = card.title.as_str();
    html! {
        div.actions {
            @if let Some(url) = &card.connect {
                a.button.main href=(url) target="_blank" rel="noopener noreferrer" { (view.texts().connect) (parts::unseen(title)) }
            }
            @for (action, offer) in &card.offers { (button(view, card, action, offer)) }
        }
    }
}

fn button(view: &View<'_>, card: &Card, action: &MachineAction, offer: &Offer) -> Markup {
    let action = &action.action;
    let button = Button {
        action,
        path: &card.path(action.path),
        about: &card.title,
        key: &card.name,
        fields: &[("uid", &card.uid)],
        warning: card.warning.as_ref(),
    };
    match (action.place, offer) {
        (Place::Section | Place::Folded, _) | (_, Offer::No) => Markup::default(),
        (_, Offer::Blocked(blocked)) => parts::refused(view, &button, blocked),
        (_, Offer::Yes) => parts::button(view, &button),
    }
}

/// The hints of the actions that the user can do.
pub fn hints(view: &View<'_>, card: &Card) -> Markup {
    let offered = card.offers.iter().map(|(action, _)| view.action(&action.action));
    html! {
        @for texts in offered {
            @if let Some(hint) = &texts.hint { p.hint { (texts.label) ": " (hint) } }
        }
    }
}
