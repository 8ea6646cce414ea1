//! What stands for the placeholders of an Instance.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::api::shown::{cut, is_control};
use crate::clients::mail::Mail;
use crate::runtime::clock::go_duration;

/// The placeholder with the address of the Tenant, which is the only value that has been checked.
pub(super) const ADDRESS: &str = "tenantEmail";

/// The names of the placeholders.
pub(super) const NAMES: [&str; 13] = [
    "tenantName",
    "fullName",
    "greeting",
    ADDRESS,
    "prettyName",
    "instanceName",
    "namespace",
    "action",
    "data",
    "warning",
    "deadline",
    "remainingTime",
    "link",
];

/// The value of a placeholder, on one line.
pub(super) fn value(name: &str, mail: &Mail, zone: &TimeZone, zone_name: &str) -> String {
    let text = match name {
        "tenantName" => &mail.tenant_name,
        ADDRESS => &mail.tenant_email,
        "fullName" => return one_line(&cut(&mail.full_name, LONGEST)),
        "greeting" => return one_line(&cut(&mail.greeting(), LONGEST)),
        "prettyName" => return one_line(&cut(&mail.pretty_name, LONGEST)),
        "instanceName" => &mail.instance_name,
        "namespace" => &mail.namespace,
        "link" => &mail.link,
        "action" => return mail.end.action().to_owned(),
        "data" => return mail.end.data().to_owned(),
        "warning" => {
            return mail.warning.map_or_else(String::new, |(number, of)| format!("{number} of {of}"));
        }
        "remainingTime" => return go_duration(mail.remaining),
        "deadline" => return in_words(mail.deadline, zone, zone_name),
        _ => return String::new(),
    };
    one_line(text)
}

/// The most characters of a text that may be a user's.
const LONGEST: usize = 300;

/// A text without what could begin a line or turn the direction of the text that follows: controls, the line and
/// paragraph separators, and the formatting characters of the bidirectional algorithm become blanks. Letters of
/// scripts that are written from right to left stay.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_control(c) { ' ' } else { c }).collect()
}

/// A time as a person says it: `Friday 20 November at 18:00 Europe/Rome`.
pub(super) fn in_words(time: Timestamp, zone: &TimeZone, zone_name: &str) -> String {
    format!("{} {zone_name}", time.to_zoned(zone.clone()).strftime("%A %-d %B at %H:%M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_in_the_words_and_the_zone_of_the_tenant() {
        let said =
            |time: &str, zone: &str| in_words(time.parse().unwrap(), &TimeZone::get(zone).unwrap(), zone);
        assert_eq!(said("2026-11-20T17:00:59Z", "Europe/Rome"), "Friday 20 November at 18:00 Europe/Rome");
        // Summer time, another day, a single digit.
        assert_eq!(said("2026-06-30T23:05:00Z", "Europe/Rome"), "Wednesday 1 July at 01:05 Europe/Rome");
        assert_eq!(said("2026-11-20T17:00:00Z", "UTC"), "Friday 20 November at 17:00 UTC");
        assert_eq!(said("2026-11-20T17:00:00Z", "Asia/Kolkata"), "Friday 20 November at 22:30 Asia/Kolkata");
    }

    #[test]
    fn what_could_begin_a_line_becomes_a_blank() {
        assert_eq!(one_line("a\r\nb\tc\0d\u{85}e\u{2028}f\u{7f}"), "a  b c d e f ");
        assert_eq!(one_line("a\u{202e}txt.exe\u{2066}"), "a txt.exe ");
        assert_eq!(one_line("שלום 🎓 <b>$x"), "שלום 🎓 <b>$x");
    }
}
