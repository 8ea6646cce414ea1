//! The HTML of the parts of a machine that its card and its page share: its state, the time that is left, and the buttons
//! of its actions.

use maud::{Markup, html};

use super::actions::{KEEP, MachineAction, Offer};
use super::card::{Card, Opening};
use super::left::Left;
use crate::api::why::{Limit, Next, Step};
use crate::controllers::dashboard::action::entry::Place;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::standing::Standing;
use crate::controllers::dashboard::texts::Ending;
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::time;
use crate::controllers::dashboard::ui::view::View;

/// Returns why a machine is in its state, in one sentence.
pub fn because(view: &View<'_>, card: &Card) -> String {
    let cause = card.cause.as_ref().map(|cause| parts::sentence(view, cause));
    cause.unwrap_or_else(|| {
        let texts = view.texts();
        if card.is_empty { texts.off_and_empty.clone() } else { texts.because.of(card.standing).clone() }
    })
}

/// The heading of a machine with its state. The script observes the state: it announces the end of a change, and removes
/// the notice about it.
pub fn state(view: &View<'_>, card: &Card, heading: &Markup) -> Markup {
    html! { div.top data-machine=(card.name) { (heading) (parts::badge(view, card.standing)) } }
}

/// The progress of its start: the step, the elapsed time, which the script counts, and the usual time.
pub fn progress(view: &View<'_>, card: &Card) -> Markup {
    let texts = view.texts();
    let Some(progress) = &card.progress else { return Markup::default() };
    let elapsed = progress.since.map(|since| view.now.duration_since(since).as_secs().max(0));
    let usual = progress.usual.map(|usual| usual.as_secs());
    html! {
        @if elapsed.is_some() || progress.step.is_some() {
            p.soft {
                @match progress.step {
                    Some(step) => { (texts.step.of(step)) },
                    None => { (texts.standing.of(card.standing)) },
                }
                @if let Some(part) = &progress.imported { " (" (part) ")" }
                @if let Some(elapsed) = elapsed {
                    ": " (texts.so_far) " " span data-elapsed=(elapsed) { (time::clock(elapsed)) }
                    @if let Some(usual) = usual { ", " (texts.usually) " " (time::clock(usual)) }
                }
            }
        }
    }
}

/// The warning that a machine whose Template was deleted cannot be started again.
pub fn last_run(view: &View<'_>, card: &Card) -> Markup {
    html! { @if card.is_last_run { p.notice { strong { (view.texts().last_run) } } } }
}

/// The button that asks for a notification. The script shows it if the browser has notifications and the user has not
/// decided yet.
pub fn notify<'c>(view: &View<'_>, cards: impl IntoIterator<Item = &'c Card>) -> Markup {
    let is_start = cards.into_iter().any(|card| card.standing.is_start());
    html! { @if is_start { button.plain #notify type="button" hidden { (view.texts().notify) } } }
}

/// The time that is left, with the button that extends it.
pub fn left(view: &View<'_>, card: &Card) -> Markup {
    let texts = view.texts();
    let said = match &card.left {
        None => return Markup::default(),
        Some(Left::Step(step)) => next(view, step),
        Some(Left::Limit(limit)) => html! { p.soft { (says(view, limit)) } },
        Some(Left::Unlimited) => html! { p.soft { (texts.next_nothing) } },
    };
    html! { div.row { (said) (keep(view, card)) } }
}

/// The button that extends the time that is left.
pub fn keep(view: &View<'_>, card: &Card) -> Markup {
    match card.offer(&KEEP) {
        Some(offer) => button(view, card, &KEEP, offer),
        None => Markup::default(),
    }
}

/// Returns the sentence about a time limit of its Template.
pub fn says(view: &View<'_>, limit: &Limit) -> String {
    let Limit { because, end, after } = limit;
    let ending = Ending::of(Some(*end), *because);
    view.texts().template_says.of(ending).fill(&[("time", &time::duration(view, after))])
}

/// The next step of a machine, with its time.
pub fn next(view: &View<'_>, step: &Step) -> Markup {
    let texts = view.texts();
    let Step { because, end, next, .. } = step;
    let ending = Ending::of(*end, *because);
    let table = if matches!(next, Next::End(_)) { &texts.until } else { &texts.warning_due };
    let (before, after) = table.of(ending).around();
    let at = next.at().0;
    html! {
        @match next {
            Next::Warning(_) => p.soft { (before) (time::ago(view, at)) (after) "." },
            Next::End(_) => p.deadline { strong { (before) (time::ago(view, at)) (after) ":" } " " (time::exact(view, at)) "." },
        }
    }
}

/// The buttons of the actions on a machine.
pub fn actions(view: &View<'_>, card: &Card) -> Markup {
    let title = card.title.as_str();
    // The button that keeps it is beside the time that is left. Buttons that ask a question stay together.
    let offers = card.offers.iter().filter(|(action, _)| action.action.name != KEEP.action.name);
    let (questions, others): (Vec<_>, Vec<_>) =
        offers.partition(|(action, _)| action.action.place == Place::Question);
    html! {
        div.actions {
            @for (number, opening) in card.openings.iter().enumerate() {
                a.button.main[number == 0] href=(opening.url()) target="_blank" rel="noopener noreferrer" { (label(view, opening)) (parts::unseen(title)) }
            }
            @if card.openings.is_empty() && card.standing == Standing::Ready {
                a.button.main href={ (card.path(paths::MACHINE)) "#environments" } { (view.texts().connect_help.how) (parts::unseen(title)) }
            }
            @for (action, offer) in others { (button(view, card, action, offer)) }
            @if !questions.is_empty() { div.questions { @for (action, offer) in questions { (button(view, card, action, offer)) } } }
        }
    }
}

/// Returns the label of a link that opens a machine.
fn label(view: &View<'_>, opening: &Opening) -> &'static str {
    let texts = view.texts();
    match opening {
        Opening::Connect(_) => &texts.connect,
        Opening::Terminal(_) => &texts.to_terminal,
        Opening::Console(_) => &texts.to_console,
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
