//! The class as a table for spreadsheets.

use super::filter::State;
use super::memory::Unread;
use super::model::{Of, Row, Table};
use crate::api::csv::csv;
use crate::api::promise::End;
use crate::api::shown::escaped;
use crate::api::usage;
use crate::api::why::Next;
use crate::controllers::dashboard::texts::Texts;

/// The columns. Their names are the same in all languages, for programs that read them.
const COLUMNS: [&str; 15] = [
    "user",
    "first",
    "last",
    "email",
    "namespace",
    "machine",
    "title",
    "template",
    "state",
    "reason",
    "cause",
    "used",
    "step",
    "due",
    "size",
];

/// Returns a table with a row for each machine, and one for each student without a machine.
pub fn export(texts: &'static Texts, table: &Table<'_>) -> String {
    let head = COLUMNS.map(str::to_owned);
    let rows = table.rows.iter().flat_map(|row| of_student(texts, table, row));
    csv(std::iter::once(head).chain(rows))
}

fn of_student(texts: &'static Texts, table: &Table<'_>, row: &Row<'_>) -> Vec<[String; 15]> {
    if row.machines.is_empty() {
        let cause = row.unread.map(|why| unread(texts, why)).unwrap_or_default().to_owned();
        let mut cells = of_person(row);
        (cells[8], cells[10]) = (row.state.name(), cause);
        return vec![cells];
    }
    row.machines.iter().map(|of| of_machine(texts, table, row, of)).collect()
}

/// Returns why the machines of a student are not known.
pub fn unread(texts: &'static Texts, why: Unread) -> &'static str {
    let texts = &texts.class;
    match why {
        Unread::NotYet => &texts.not_yet,
        Unread::Forbidden => &texts.forbidden,
        Unread::TooMany => &texts.too_many,
    }
}

/// Returns the cells of a student without a machine.
fn of_person(row: &Row<'_>) -> [String; 15] {
    let person = row.person;
    let mut cells: [String; 15] = Default::default();
    let known = [
        row.name,
        person.first.as_str(),
        person.last.as_str(),
        person.email.as_str(),
        person.namespace.as_str(),
    ];
    for (cell, text) in cells.iter_mut().zip(known) {
        *cell = escaped(text).into_owned();
    }
    cells
}

fn of_machine(
    texts: &'static Texts,
    table: &Table<'_>,
    row: &Row<'_>,
    (key, machine): &Of<'_>,
) -> [String; 15] {
    let next = table.next(machine);
    let ended = next.map(|step| {
        let end = match (&step.next, step.end) {
            (Next::Warning(_), _) => "warned",
            (Next::End(_), Some(End::Stopped)) => "stopped",
            (Next::End(_), Some(End::Deleted)) => "deleted",
            (Next::End(_), None) => "stopped or deleted",
        };
        (end.to_owned(), step.next.at().0.to_string())
    });
    let (step, due) = ended.unwrap_or_default();
    let sizes = table.template(machine).map(|template| usage::size(&template.spec)).unwrap_or_default();
    let sizes: Vec<String> = sizes.iter().map(|share| texts.named(&share.measure, &share.used)).collect();
    let (reason, cause) = machine.cause.as_ref().map_or(("", ""), |cause| (&*cause.reason, &*cause.message));
    let mut cells = of_person(row);
    cells[4] = key.namespace.to_string();
    let of_machine = [
        key.name.to_string(),
        machine.title.to_string(),
        machine.template.to_string(),
        State::Machine(machine.standing).name(),
        reason.to_owned(),
        cause.to_owned(),
        machine.last_use.map(|at| at.to_string()).unwrap_or_default(),
        step,
        due,
        sizes.join(", "),
    ];
    for (cell, text) in cells.iter_mut().skip(5).zip(of_machine) {
        *cell = escaped(&text).into_owned();
    }
    cells
}
