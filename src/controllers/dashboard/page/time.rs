//! Times as people say them, with the exact one on hover.

use jiff::Timestamp;
use jiff::civil::Weekday;
use maud::{Markup, html};

use super::view::View;
use super::words::Unit;
use crate::api::lifetime::Lifetime;

/// The units and their seconds, from the longest.
const UNITS: [(Unit, i64); 3] = [(Unit::Days, 86_400), (Unit::Hours, 3_600), (Unit::Minutes, 60)];

/// A time as it is from now: `in 3 days`, `2 hours ago`.
pub fn relative(view: &View<'_>, at: Timestamp) -> String {
    let seconds = at.duration_since(view.now).as_secs();
    let fits = |(_, length): &&(Unit, i64)| seconds.abs() >= *length;
    let (unit, count) =
        UNITS.iter().find(fits).map_or((Unit::Moments, 0), |(unit, length)| (*unit, seconds.abs() / length));
    if seconds > 0 { (view.words().in_time)(unit, count) } else { (view.words().ago)(unit, count) }
}

/// The exact time in the zone of the user: `Thursday 26 November 2026, 19:06 CET`.
pub fn exact(view: &View<'_>, at: Timestamp) -> String {
    let zoned = at.to_zoned(view.zone.clone());
    let words = view.words();
    let weekday = match zoned.weekday() {
        Weekday::Monday => 0,
        Weekday::Tuesday => 1,
        Weekday::Wednesday => 2,
        Weekday::Thursday => 3,
        Weekday::Friday => 4,
        Weekday::Saturday => 5,
        Weekday::Sunday => 6,
    };
    let month = usize::try_from(zoned.month()).unwrap_or(1).saturating_sub(1);
    let weekday = words.weekdays.get(weekday).copied().unwrap_or_default();
    let month = words.months.get(month).copied().unwrap_or_default();
    format!("{weekday} {} {month} {}, {}", zoned.day(), zoned.year(), zoned.strftime("%H:%M %Z"))
}

/// A time as it is from now, with the exact one on hover.
pub fn ago(view: &View<'_>, at: Timestamp) -> Markup {
    html! { time datetime=(at) title=(exact(view, at)) { (relative(view, at)) } }
}

/// A time that somebody has to know exactly: both.
pub fn due(view: &View<'_>, at: Timestamp) -> Markup {
    html! { time datetime=(at) { (relative(view, at)) " (" (exact(view, at)) ")" } }
}

/// A duration of a Template, such as `7d`, in words; as it is written if it cannot be read.
pub fn duration(view: &View<'_>, text: &str) -> String {
    let unit = text.chars().next_back();
    let count = unit.and_then(|unit| text.strip_suffix(unit)).and_then(|digits| digits.parse().ok());
    match (unit, count, Lifetime::parse(text)) {
        (Some(unit), Some(count), Ok(_)) => (view.words().duration)(unit, count),
        _ => crate::api::shown::shown(text).into_owned(),
    }
}
