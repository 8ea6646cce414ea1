//! The values of the placeholders of an Instance.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Letter;
use crate::api::instance::Receipt;
use crate::api::promise::End;
use crate::api::shown::{cut, is_control};
use crate::runtime::clock::go_duration;

/// The placeholder with the address of the Tenant. It is the only value that has been validated.
pub(super) const ADDRESS: &str = "tenantEmail";

/// The value of a placeholder in a mail.
type Value = fn(&Letter) -> String;

/// The names of the placeholders, and their values on one line.
pub(super) const ALL: [(&str, Value); 14] = [
    ("tenantName", |letter| one_line(&letter.mail.tenant_name)),
    ("fullName", |letter| one_line(&cut(&letter.mail.full_name, LONGEST))),
    ("greeting", |letter| one_line(&cut(&letter.mail.greeting(), LONGEST))),
    (ADDRESS, |letter| one_line(&letter.mail.tenant_email)),
    ("prettyName", |letter| one_line(&cut(&letter.mail.pretty_name, LONGEST))),
    ("instanceName", |letter| one_line(&letter.mail.instance_name)),
    ("namespace", |letter| one_line(&letter.mail.namespace)),
    ("action", |letter| letter.mail.end.map_or("", End::action).to_owned()),
    ("data", |letter| letter.mail.end.map_or("", End::data).to_owned()),
    ("warning", |Letter { mail, .. }| {
        mail.warning.map(|(at, of)| format!("{at} of {of}")).unwrap_or_default()
    }),
    ("deadline", |letter| in_words(letter.mail.deadline, letter.zone, letter.zone_name)),
    ("remainingTime", |letter| go_duration(letter.mail.remaining)),
    ("files", |letter| one_line(&files(&letter.mail.files))),
    ("link", |letter| one_line(&letter.mail.link)),
];

/// Whether this is the name of a placeholder.
pub(super) fn is_known(name: &str) -> bool {
    ALL.iter().any(|(known, _)| *known == name)
}

/// The limit for a text that a user may have chosen, in characters.
const LONGEST: usize = 300;

/// Replaces characters that could begin a line or change the direction of the following text by blanks: control
/// characters, the line and paragraph separators, and the formatting characters of the bidirectional algorithm.
/// Letters of right-to-left scripts stay.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_control(c) { ' ' } else { c }).collect()
}

/// Lists uploaded files: `exam-1.zip (12345 bytes, SHA-256 ba27…)`.
fn files(receipts: &[Receipt]) -> String {
    let file = |Receipt { name, size, sha256 }: &Receipt| format!("{name} ({size} bytes, SHA-256 {sha256})");
    receipts.iter().map(file).collect::<Vec<_>>().join("; ")
}

/// Formats a time as text: `Friday 20 November at 18:00 Europe/Rome`.
pub(super) fn in_words(time: Timestamp, zone: &TimeZone, zone_name: &str) -> String {
    format!("{} {zone_name}", time.to_zoned(zone.clone()).strftime("%A %-d %B at %H:%M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_written_out_in_the_configured_time_zone() {
        let said =
            |time: &str, zone: &str| in_words(time.parse().unwrap(), &TimeZone::get(zone).unwrap(), zone);
        assert_eq!(said("2026-11-20T17:00:59Z", "Europe/Rome"), "Friday 20 November at 18:00 Europe/Rome");
        // Summer time, another day, a single digit.
        assert_eq!(said("2026-06-30T23:05:00Z", "Europe/Rome"), "Wednesday 1 July at 01:05 Europe/Rome");
        assert_eq!(said("2026-11-20T17:00:00Z", "UTC"), "Friday 20 November at 17:00 UTC");
        assert_eq!(said("2026-11-20T17:00:00Z", "Asia/Kolkata"), "Friday 20 November at 22:30 Asia/Kolkata");
    }

    #[test]
    fn characters_that_could_begin_a_line_become_blanks() {
        assert_eq!(one_line("a\r\nb\tc\0d\u{85}e\u{2028}f\u{7f}"), "a  b c d e f ");
        assert_eq!(one_line("a\u{202e}txt.exe\u{2066}"), "a txt.exe ");
        assert_eq!(one_line("שלום 🎓 <b>$x"), "שלום 🎓 <b>$x");
    }
}
