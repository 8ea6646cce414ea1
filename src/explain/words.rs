//! Numbers, tables and conditions as text.

use std::fmt::Write;

use jiff::Timestamp;

use crate::api::condition::Condition;
use crate::api::shown::message;
use crate::api::why::span;

/// Formats a number of things: `1 core`, `2 cores`.
pub fn count(number: impl TryInto<u64>, thing: &str) -> String {
    // A negative number is not a number of things.
    let number = number.try_into().unwrap_or_default();
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{end}")
}

/// Formats a number of occurrences: `once`, `2 times`.
pub fn times(number: i64) -> String {
    if number == 1 { "once".to_owned() } else { format!("{number} times") }
}

/// Returns the message of a condition with its reason and age.
pub fn sentence(condition: &Condition, now: Timestamp) -> String {
    let Condition { type_, reason, message, last_transition_time, .. } = condition;
    format!("{message} ({type_}: {reason}, for {})", span(last_transition_time, now))
}

/// Formats rows as a table. Its columns are aligned, and its lines begin with `indent`.
pub fn table<const N: usize>(rows: &[[String; N]], indent: &str) -> String {
    let shown = |row: &[String; N]| row.each_ref().map(|cell| message(cell));
    let rows: Vec<[String; N]> = rows.iter().map(shown).collect();
    let mut widths = [0; N];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(text, "{indent}{}", cells.join("   ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_with_their_nouns() {
        for (number, text) in [(0, "0 cores"), (1, "1 core"), (2, "2 cores"), (-3, "0 cores")] {
            assert_eq!(count(number, "core"), text);
        }
        assert_eq!([times(0), times(1), times(2)], ["0 times", "once", "2 times"]);
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["A", "B", ""], ["long", "é\u{1b}", "x"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows, "  "), "  A      B\n  long   é\\u{1b}   x\n");
    }
}
