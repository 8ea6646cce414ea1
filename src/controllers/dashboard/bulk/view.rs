//! The HTML of an action on a class.

use maud::{Markup, html};

use super::model::{Asked, CHECKED, Chosen, Found, MOST_ROWS, class_path};
use super::words::{mark, reason, word};
use crate::api::Template;
use crate::api::shown::shown;
use crate::class::model::{People, Row, State, Totals, Unchanged, Verb};
use crate::controllers::dashboard::course::Tab;
use crate::controllers::dashboard::course::view::frame;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::student::template_title;
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{links, parts};

/// Renders the question before an action, or its progress.
pub fn page(view: &View<'_>, asked: &Asked, found: &Found) -> Markup {
    let texts = &view.texts().bulk;
    let totals = Totals::of(&found.rows);
    let announced = html! {
        @if asked.id.is_some() { span #said aria-atomic="true" { (texts.done.of(asked.verb)) ": " (totals.done) "." } }
    };
    let content = html! {
        h2 { (texts.heading.of(asked.verb)) }
        @if found.chosen == Chosen::Open {
            (choice(view, asked, &found.templates))
        } @else if asked.id.is_none() {
            (question(view, asked, found))
        } @else {
            (progress(view, asked, found))
        }
    };
    frame(view, &found.course, Tab::Class, &announced, &content)
}

/// The choice of the Template.
fn choice(view: &View<'_>, asked: &Asked, templates: &[Template]) -> Markup {
    let texts = view.texts();
    html! {
        @if templates.is_empty() {
            p.empty { (texts.no_templates_here) }
            p { a.button href=(class_path(&asked.course)) { (texts.bulk.back) } }
        } @else {
            form.selection method="get" action=(asked.page()) {
                (parts::hidden(&asked.fields("")))
                div.field {
                    label for="template" { (texts.template) }
                    select id="template" name="template" hx-morph-skip hx-nonce=(view.nonce) {
                        @for template in templates { option value=(template.name()) { (shown(template_title(template))) } }
                    }
                }
                div.actions {
                    button.main type="submit" { (texts.bulk.next) }
                    a.button href=(class_path(&asked.course)) { (texts.cancel) }
                }
            }
        }
    }
}

/// The people and the Template of the action.
fn subject(view: &View<'_>, asked: &Asked, found: &Found) -> Markup {
    let texts = view.texts();
    html! {
        p.soft {
            @match &asked.people {
                People::All => { (texts.bulk.all) },
                People::Named(names) => { (texts.bulk.selected.of(&names.len().to_string())) },
            }
            " · "
            @match &found.chosen {
                Chosen::One(template) => { (texts.template) ": " (shown(template_title(template))) },
                Chosen::All | Chosen::Open => { (texts.bulk.any_template) },
            }
        }
    }
}

/// The question before the action.
fn question(view: &View<'_>, asked: &Asked, found: &Found) -> Markup {
    let texts = &view.texts().bulk;
    let totals = Totals::of(&found.rows);
    let count = totals.to_do.to_string();
    html! {
        (subject(view, asked, found))
        @if totals.to_do == 0 {
            p { strong { (texts.nothing) } }
        } @else {
            p { strong { (texts.question.of(asked.verb).of(&count)) } " " (texts.consequence.of(asked.verb)) }
        }
        (numbers(view, asked.verb, found, false))
        div.actions {
            @if totals.to_do > 0 {
                (form(asked, found, &Form { label: &texts.confirm.of(asked.verb).of(&count), is_retry: false, is_automatic: false }))
            }
            a.button href=(class_path(&asked.course)) { (view.texts().cancel) }
        }
        (table(view, asked, found, true))
    }
}

/// The progress of the action.
fn progress(view: &View<'_>, asked: &Asked, found: &Found) -> Markup {
    let texts = &view.texts().bulk;
    let (totals, retried) = (Totals::of(&found.rows), found.retried());
    let is_automatic = found.is_automatic(asked, view.now);
    let is_open = found.id.is_open(view.now);
    let left = texts.go_on.of(&totals.to_do.to_string());
    html! {
        (subject(view, asked, found))
        (numbers(view, asked.verb, found, true))
        @if !is_open { p.notice { (texts.over) } }
        div.actions {
            @if is_open && totals.to_do > 0 {
                (form(asked, found, &Form { label: &left, is_retry: false, is_automatic }))
            }
            @if is_open && retried > 0 {
                (form(asked, found, &Form { label: &texts.again.of(&retried.to_string()), is_retry: true, is_automatic: false }))
            }
            a.button href=(class_path(&asked.course)) { (texts.back) }
        }
        (table(view, asked, found, false))
        p { a href=(asked.csv()) { (texts.csv) } }
    }
}

/// A form that starts or continues the action.
struct Form<'a> {
    label: &'a str,
    is_retry: bool,
    is_automatic: bool,
}

/// The form. The script sends it again if no replica answers, and sends it by itself if it is automatic: nothing is done
/// twice.
fn form(asked: &Asked, found: &Found, form: &Form<'_>) -> Markup {
    let id = found.id.to_string();
    let is_danger = asked.verb == Verb::Delete;
    html! {
        form method="post" action=(asked.page()) data-again data-automatic[form.is_automatic] {
            (parts::hidden(&asked.fields(&id)))
            @if form.is_retry { input type="hidden" name="retry" value="1"; }
            button.main[!is_danger].danger[is_danger] type="submit" { (form.label) }
        }
    }
}

/// The number of rows in each state.
fn numbers(view: &View<'_>, verb: Verb, found: &Found, is_begun: bool) -> Markup {
    let Totals { done, running, unchanged, to_do, refused } = Totals::of(&found.rows);
    let texts = &view.texts().bulk;
    let states = [
        (done, "good", texts.done.of(verb)),
        (running, "busy", &texts.running),
        (if is_begun { to_do } else { 0 }, "busy", &texts.to_do),
        (unchanged, "quiet", &texts.unchanged),
        (refused, "bad", &texts.refused),
    ];
    html! {
        ul.totals {
            @for (count, mark, word) in states.into_iter().filter(|(count, _, _)| *count > 0) {
                li { span.badge.(mark) { (word) } " " (count) }
            }
        }
        @if !is_begun && found.to_do > CHECKED { p.hint { (texts.checked.of(&CHECKED.to_string())) } }
    }
}

/// The rows; before the action only those that it cannot change.
fn table(view: &View<'_>, asked: &Asked, found: &Found, is_question: bool) -> Markup {
    let texts = view.texts();
    let is_shown = |row: &&Row| !is_question || matches!(row.state, State::Refused(_));
    let rows: Vec<&Row> = found.sorted().into_iter().filter(is_shown).collect();
    let more = rows.len().saturating_sub(MOST_ROWS);
    html! {
        @if !rows.is_empty() {
            div.scroll role="region" aria-label=(texts.bulk.result) tabindex="0" {
                table.class {
                    caption.unseen { (texts.bulk.result) }
                    thead {
                        tr {
                            @for head in [&texts.class.person, &texts.class.machine, &texts.class.state, &texts.bulk.reason] {
                                th scope="col" { (head) }
                            }
                        }
                    }
                    tbody { @for (at, of) in rows.iter().take(MOST_ROWS).enumerate() { (row(view, asked.verb, at, of)) } }
                }
            }
        }
        @if more > 0 { p.hint { (texts.bulk.more.of(&more.to_string())) } }
    }
}

fn row(view: &View<'_>, verb: Verb, at: usize, row: &Row) -> Markup {
    let texts = view.texts();
    let has_machine = match &row.state {
        State::Done => verb != Verb::Delete,
        State::Running => true,
        State::Unchanged(why) => *why != Unchanged::NoMachine,
        State::ToDo(_) | State::Refused(_) => verb != Verb::Start,
    };
    let title = if row.title.is_empty() { &row.person } else { &row.title };
    let why = reason(texts, verb, &row.state);
    html! {
        tr id=(parts::id("row", &at.to_string())) {
            th scope="row" { (shown(title)) div.soft { (shown(&row.person)) } }
            td {
                @if let Some(machine) = row.machine.as_ref().filter(|_| has_machine) {
                    a href=(links::of_machine(paths::MACHINE, &machine.namespace, &machine.name)) { (shown(&machine.name)) }
                }
            }
            td { span.badge.(mark(&row.state)) { (word(texts, verb, &row.state)) } }
            td { (shown(&why)) }
        }
    }
}
