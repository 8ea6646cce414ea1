//! The exams as a table for spreadsheets.

use jiff::Timestamp;

use super::model::{Exams, Row};
use crate::api::csv::csv;
use crate::api::instance::Receipt;
use crate::api::shown::escaped;

/// The columns. Their names are the same in all languages, for programs that read them.
const COLUMNS: [&str; 18] = [
    "user",
    "first",
    "last",
    "email",
    "namespace",
    "machine",
    "title",
    "template",
    "checked",
    "check",
    "ends",
    "upload",
    "attempts",
    "uploaded",
    "message",
    "file",
    "size",
    "sha256",
];

/// Returns a table with a row for each receipt, and one for each machine without a receipt.
pub fn export(exams: &Exams<'_>) -> String {
    let head = COLUMNS.map(str::to_owned);
    csv(std::iter::once(head).chain(exams.rows.iter().flat_map(of_machine)))
}

fn of_machine(row: &Row<'_>) -> Vec<[String; 18]> {
    let Row { key, machine, exam, student } = row;
    let text = |text: &str| escaped(text).into_owned();
    let [first, last, email] = student.map_or_else(Default::default, |(_, person)| {
        [&person.first, &person.last, &person.email].map(|part| text(part))
    });
    let line = |receipt: Option<&Receipt>| {
        let size = receipt.map(|receipt| receipt.size.to_string());
        [
            text(row.user()),
            first.clone(),
            last.clone(),
            email.clone(),
            key.namespace.to_string(),
            key.name.to_string(),
            text(&machine.title),
            text(&machine.template.name),
            time(exam.checked),
            format!("{:?}", exam.check).to_lowercase(),
            time(exam.ends),
            format!("{:?}", exam.upload).to_lowercase(),
            exam.attempts.to_string(),
            time(exam.uploaded),
            text(&exam.upload_said),
            receipt.map(|receipt| text(&receipt.name)).unwrap_or_default(),
            size.unwrap_or_default(),
            receipt.map(|receipt| text(&receipt.sha256)).unwrap_or_default(),
        ]
    };
    if exam.receipts.is_empty() {
        vec![line(None)]
    } else {
        exam.receipts.iter().map(|one| line(Some(one))).collect()
    }
}

fn time(at: Option<Timestamp>) -> String {
    at.map(|at| at.to_string()).unwrap_or_default()
}
