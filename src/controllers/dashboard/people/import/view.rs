//! The HTML of a list of people, its changes and their results.

use maud::{Markup, html};

use super::list::Fault;
use super::send::{Done, Row};
use crate::api::shown::{message, shown};
use crate::controllers::dashboard::action::result::{Failure, Outcome};
use crate::controllers::dashboard::course::view::frame;
use crate::controllers::dashboard::course::{Course, Tab};
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::people::step::Step;
use crate::controllers::dashboard::people::view::of_course;
use crate::controllers::dashboard::texts::{Problem, Texts};
use crate::controllers::dashboard::ui::parts;
use crate::controllers::dashboard::ui::view::View;

/// The id of the field with the list, into which the script reads a file.
const LIST: &str = "list";

/// Renders the form, with this text, and with the fault of a list that was rejected.
pub fn form(view: &View<'_>, course: &Course, text: &str, fault: Option<&Fault>) -> Markup {
    let content = html! {
        section aria-labelledby="import" {
            h2 #import { (view.texts().people.import) }
            (fields(view, course, text, fault))
        }
    };
    frame(view, course, Tab::People, &Markup::default(), &content)
}

/// The changes of a list, or their results.
pub struct Checked<'a> {
    /// The list.
    pub text: &'a str,
    /// The lines.
    pub rows: &'a [Row],
    /// Whether the changes were made.
    pub is_made: bool,
}

/// Renders the changes of a list, or their results, with the form for a corrected list.
pub fn checked(view: &View<'_>, course: &Course, of: &Checked<'_>) -> Markup {
    let texts = &view.texts().people;
    let Checked { text, rows, is_made } = of;
    let count = |is: fn(&Row) -> bool| rows.iter().filter(|row| is(row)).count();
    let (faults, changes, late) = (count(is_fault), count(is_change), count(is_late));
    let is_open = if *is_made { late > 0 } else { changes + late > 0 };
    let result = if *is_made { &texts.made } else { &texts.planned };
    let content = html! {
        section aria-labelledby="check" {
            h2 #check { @if *is_made { (texts.results) } @else { (texts.check) } }
            // The script drops its copy of the list after a notice of success.
            div.notice.done[*is_made && !is_open] role="status" {
                p {
                    (result.of(&changes.to_string()))
                    @if faults > 0 { " " (texts.faults.of(&faults.to_string())) }
                    @if late > 0 { " " (texts.late.of(&late.to_string())) }
                }
            }
            @if is_open {
                form method="post" action=(of_course(paths::IMPORT, course)) {
                    (parts::hidden(&[("list", *text), ("made", "yes")]))
                    div.actions {
                        button.main type="submit" { @if *is_made { (texts.go_on) } @else { (texts.apply) } }
                        a.button href=(of_course(paths::PEOPLE, course)) { (view.texts().cancel) }
                    }
                }
            } @else {
                p { a.button.main href=(of_course(paths::PEOPLE, course)) { (texts.back) } }
            }
            (lines(view, rows, is_fault))
            (lines(view, rows, is_late))
            (lines(view, rows, |row| is_change(row) || is_unchanged(row)))
        }
        section aria-labelledby="correct" {
            h2 #correct { (texts.correct) }
            (fields(view, course, text, None))
        }
    };
    frame(view, course, Tab::People, &Markup::default(), &content)
}

fn is_fault(row: &Row) -> bool {
    row.result.is_err()
}

fn is_late(row: &Row) -> bool {
    matches!(row.result, Ok(Done::Late))
}

fn is_unchanged(row: &Row) -> bool {
    matches!(row.result, Ok(Done::Step(Step::Unchanged)))
}

fn is_change(row: &Row) -> bool {
    matches!(row.result, Ok(Done::Step(step)) if step != Step::Unchanged)
}

/// The lines for which a condition holds.
fn lines(view: &View<'_>, rows: &[Row], is: fn(&Row) -> bool) -> Markup {
    let mut rows = rows.iter().filter(|row| is(row)).peekable();
    html! {
        @if rows.peek().is_some() { ul.rows { @for row in rows { li { (line(view, row)) } } } }
    }
}

fn line(view: &View<'_>, row: &Row) -> Markup {
    let all = view.texts();
    let texts = &all.people;
    html! {
        div.row id=(parts::id("line", &row.line.to_string())) {
            div {
                p { strong { (shown(if row.name.trim().is_empty() { &row.user } else { row.name.trim() })) } }
                p.soft { (texts.line.fill(&[("number", &row.line.to_string())])) " · " (shown(&row.user)) }
            }
            @match &row.result {
                Ok(Done::Step(step)) => p { (texts.steps.of(*step).fill(&[("role", role(all, row))])) },
                Ok(Done::Late) => p.soft { (texts.not_yet) },
                Err(failure) => p.error { (message(&why(all, failure))) },
            }
        }
    }
}

/// Returns the word for the role that a line asks for.
fn role(texts: &'static Texts, row: &Row) -> &'static str {
    match row.role {
        Some("manager") => &texts.people.manager,
        Some(_) => &texts.people.student,
        None => &texts.people.outside,
    }
}

/// Returns why the change of a line is not possible, or was not made.
fn why(texts: &'static Texts, failure: &Failure) -> String {
    match failure.outcome() {
        (Outcome::Denied(causes), _) => texts.denied(&causes),
        (Outcome::Failed(Problem::Refused), message) => message,
        (Outcome::Failed(problem), _) => texts.problems.of(problem).clone(),
        (Outcome::Done(_), _) => String::new(),
    }
}

/// The form with a list.
fn fields(view: &View<'_>, course: &Course, text: &str, fault: Option<&Fault>) -> Markup {
    let all = view.texts();
    let texts = &all.people;
    let described = if fault.is_some() { "list-error list-hint" } else { "list-hint" };
    html! {
        form.fields method="post" action=(of_course(paths::IMPORT, course)) {
            div.field {
                label for=(LIST) { (texts.list) }
                textarea id=(LIST) name="list" rows="8" required autocomplete="off" spellcheck="false" data-draft
                    aria-describedby=(described) aria-invalid=[fault.map(|_| "true")] hx-morph-skip hx-nonce=(view.nonce) { (text) }
                @if let Some((problem, value)) = fault {
                    p.error #list-error { (all.problems.of(*problem)) @if !value.is_empty() { " " (shown(value)) } }
                }
                p.hint #list-hint { (texts.list_hint) }
                pre tabindex="0" { code { "user,first,last,email,role\nada.rossi,Ada,Rossi,ada.rossi@example.org,user" } }
            }
            div.field.file {
                label for="file" { (texts.file) }
                input type="file" id="file" accept=".csv,text/csv,text/plain" data-into=(LIST) hx-morph-skip hx-nonce=(view.nonce);
            }
            button.main[text.is_empty()] type="submit" { (texts.preview) }
        }
    }
}
