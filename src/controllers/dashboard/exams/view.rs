//! The HTML of the page.

use maud::{Markup, html};

use super::actions::RETRY;
use super::facts::{Check, Exam, Upload};
use super::model::{Exams, ROWS, Row};
use crate::api::Quantity;
use crate::api::instance::Receipt;
use crate::api::shown::{message, shown};
use crate::api::usage::Measure;
use crate::controllers::dashboard::class::memory::Seen;
use crate::controllers::dashboard::course::Tab;
use crate::controllers::dashboard::course::view::frame;
use crate::controllers::dashboard::paths;
use crate::controllers::dashboard::ui::parts::{self, Button};
use crate::controllers::dashboard::ui::view::View;
use crate::controllers::dashboard::ui::{links, time};

/// Renders the page.
pub fn exams(view: &View<'_>, seen: &Seen, exams: &Exams<'_>) -> Markup {
    let texts = view.texts();
    // Only the states that need attention are announced.
    let announced = html! {
        @for (state, count) in exams.totals.iter().filter(|(state, _)| state.mark() == "bad") {
            span id=(parts::id("said", &format!("{state:?}"))) aria-atomic="true" { (texts.exams.upload_is.of(*state)) ": " (count) ". " }
        }
    };
    let content = html! {
        h2 { (texts.course_pages.exams) }
        p.soft { (texts.exams.about) }
        @if exams.missing > 0 { p.notice { (texts.class.counting.of(&exams.missing.to_string())) } }
        @if exams.all == 0 {
            p.empty { (texts.exams.empty) }
        } @else {
            ul.totals { @for (state, count) in &exams.totals { li { (upload_badge(view, *state)) " " (count) } } }
            (table(view, seen, exams))
            (pager(view, exams))
            p { a href=(of_course(paths::EXAMS_CSV, seen)) { (texts.exams.export) } }
        }
    };
    frame(view, &seen.course, Tab::Exams, &announced, &content)
}

fn table(view: &View<'_>, seen: &Seen, exams: &Exams<'_>) -> Markup {
    let texts = view.texts();
    let (of_class, texts) = (&texts.class, &texts.exams);
    html! {
        div.scroll role="region" aria-label=(texts.caption) tabindex="0" {
            table {
                caption.unseen { (texts.caption) }
                thead {
                    tr {
                        @for head in [&of_class.person, &of_class.machine, &texts.check, &texts.left, &texts.upload, &texts.receipt] {
                            th scope="col" { (head) }
                        }
                    }
                }
                tbody { @for row in &exams.rows { (line(view, seen, exams, row)) } }
            }
        }
    }
}

/// The row of a machine, which a live update finds by its id.
fn line(view: &View<'_>, seen: &Seen, exams: &Exams<'_>, row: &Row<'_>) -> Markup {
    let Row { key, machine, exam, .. } = row;
    let name = row.name();
    html! {
        tr id=(parts::id("exam", &format!("{}-{}", key.namespace, key.name))) {
            th scope="row" {
                (shown(&name))
                @if name != row.user() { div.soft { (shown(row.user())) } }
            }
            td {
                a href=(links::of_machine(paths::MACHINE, &key.namespace, &key.name)) { (shown(&machine.title)) }
                div { (parts::badge(view, machine.standing)) }
            }
            td { (check(view, exam)) }
            td { (left(view, exam)) }
            td { (upload(view, seen, exams, row)) }
            td { (receipts(view, exam)) }
        }
    }
}

fn check(view: &View<'_>, exam: &Exam) -> Markup {
    let texts = &view.texts().exams;
    html! {
        span.badge.(exam.check.mark()) { (texts.check_is.of(exam.check)) }
        @if let Some(at) = exam.checked { div.soft { (time::ago(view, at)) } }
        @if !exam.check_said.is_empty() { p.said { (message(&exam.check_said)) } }
    }
}

/// The announced deadline, or the end.
fn left(view: &View<'_>, exam: &Exam) -> Markup {
    html! {
        @if exam.check == Check::Over { (view.texts().exams.ended) " " }
        @if let Some(at) = exam.ends { (time::ago(view, at)) }
    }
}

fn upload_badge(view: &View<'_>, state: Upload) -> Markup {
    html! { span.badge.(state.mark()) { (view.texts().exams.upload_is.of(state)) } }
}

fn upload(view: &View<'_>, seen: &Seen, exams: &Exams<'_>, row: &Row<'_>) -> Markup {
    let (texts, exam) = (&view.texts().exams, row.exam);
    let can_retry = exam.upload.can_retry() && exams.can_retry && view.old.is_none();
    // The message about a success says nothing more.
    let said = Some(&exam.upload_said).filter(|said| !said.is_empty() && exam.upload != Upload::Done);
    html! {
        (upload_badge(view, exam.upload))
        @if exam.attempts > 0 { div.soft { (texts.attempts.of(&exam.attempts.to_string())) } }
        @if let Some(at) = exam.uploaded { div.soft { (time::ago(view, at)) } }
        @if let Some(said) = said { p.said { (message(said)) } }
        @if can_retry { (retry(view, seen, row)) }
    }
}

fn retry(view: &View<'_>, seen: &Seen, row: &Row<'_>) -> Markup {
    let Row { key, exam, .. } = row;
    let fields = [("uid", &*exam.uid), ("namespace", &*key.namespace), ("name", &*key.name)];
    let (path, about) = (of_course(RETRY.path, seen), row.name());
    let key = format!("{}-{}", key.namespace, key.name);
    parts::button(
        view,
        &Button { action: &RETRY, path: &path, about: &about, key: &key, fields: &fields, warning: None },
    )
}

fn receipts(view: &View<'_>, exam: &Exam) -> Markup {
    let texts = view.texts();
    html! {
        @for Receipt { name, size, sha256 } in &exam.receipts {
            div {
                (shown(name)) ", " (texts.quantity(&Measure::Disk, &Quantity::from_int(*size)))
                div { (parts::copied(view, sha256, name)) }
            }
        }
        @if exam.receipts.is_empty() && exam.upload == Upload::Done { p.soft { (texts.exams.no_receipt) } }
        @if exam.is_mailed { p.soft { (texts.exams.mailed) } }
    }
}

/// The links to the other pages of the table.
fn pager(view: &View<'_>, exams: &Exams<'_>) -> Markup {
    let texts = &view.texts().class;
    if exams.all <= ROWS {
        return Markup::default();
    }
    let (page, last) = (exams.first / ROWS, exams.first + exams.rows.len());
    let path = |number: usize| links::queried(view.path, &format!("page={number}"));
    let [from, to, total] = [exams.first + 1, last, exams.all].map(|number| number.to_string());
    html! {
        nav aria-label=(texts.pages) {
            ul {
                @if page > 0 { li { a href=(path(page)) { (texts.previous) } } }
                li { (texts.range.fill(&[("first", &from), ("last", &to), ("total", &total)])) }
                @if last < exams.all { li { a href=(path(page + 2)) { (texts.next) } } }
            }
        }
    }
}

/// Returns a path of the course.
fn of_course(pattern: &str, seen: &Seen) -> String {
    paths::fill(pattern, |_| links::encoded(seen.course.name()))
}
