//! What the reasons of conditions mean for a student. What to do about them is with whoever runs the course or the laboratory,
//! so a sentence says what it means for the machine; the sentence of the condition, with names and values, stands below it.

mod instances;
mod others;

use super::Language;
use crate::api::reason::Reason;

/// Reasons that mean the same for a student, and the sentence in each language.
type Row = (&'static [Reason], &'static str, &'static str);

/// The sentence for a reason.
pub fn of(language: Language, code: &str) -> Option<&'static str> {
    let mut rows = instances::ROWS.iter().chain(others::ROWS);
    let (_, english, italian) = rows.find(|(reasons, ..)| reasons.iter().any(|reason| *reason == code))?;
    Some(match language {
        Language::English => english,
        Language::Italian => italian,
    })
}

/// All rows.
#[cfg(test)]
pub fn rows() -> impl Iterator<Item = &'static Row> {
    instances::ROWS.iter().chain(others::ROWS)
}
