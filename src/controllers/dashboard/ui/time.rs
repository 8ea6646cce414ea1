//! Times relative to now, with the exact time on hover.

use jiff::Timestamp;
use jiff::civil::Weekday;
use maud::{Markup, html};

use super::view::View;
use crate::api::lifetime::Lifetime;

/// Returns a time relative to now: `in 3 days`, `2 hours ago`.
pub fn relative(view: &View<'_>, at: Timestamp) -> String {
    let texts = view.texts();
    let seconds = at.duration_since(view.now).as_secs();
    let units = [(&texts.days, 86_400), (&texts.hours, 3_600), (&texts.minutes, 60)];
    let unit = units.into_iter().find(|(_, length)| seconds.abs() >= *length);
    let span = unit.map(|(unit, length)| unit.of(&(seconds.abs() / length).to_string()));
    match (span, seconds > 0) {
        (Some(span), true) => texts.in_time.fill(&[("time", &span)]),
        (Some(span), false) => texts.ago.fill(&[("time", &span)]),
        (None, true) => texts.in_moments.clone(),
        (None, false) => texts.moments_ago.clone(),
    }
}

/// Returns the exact time in the zone of the user: `Thursday 26 November 2026, 19:06 CET`.
pub fn exact(view: &View<'_>, at: Timestamp) -> String {
    let zoned = at.to_zoned(view.zone.clone());
    let texts = view.texts();
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
    let weekday = texts.weekdays.get(weekday).map_or("", String::as_str);
    let month = texts.months.get(month).map_or("", String::as_str);
    format!("{weekday} {} {month} {}, {}", zoned.day(), zoned.year(), zoned.strftime("%H:%M %Z"))
}

/// A relative time, with the exact one on hover.
pub fn ago(view: &View<'_>, at: Timestamp) -> Markup {
    html! { time datetime=(at) title=(exact(view, at)) { (relative(view, at)) } }
}

/// A relative time and the exact one.
pub fn due(view: &View<'_>, at: Timestamp) -> Markup {
    html! { time datetime=(at) { (relative(view, at)) " (" (exact(view, at)) ")" } }
}

/// Returns a duration of a Template, such as `7d`, in words. An invalid duration is shown unchanged.
pub fn duration(view: &View<'_>, text: &str) -> String {
    let texts = view.texts();
    let shown = || crate::api::shown::shown(text).into_owned();
    if Lifetime::parse(text).is_err() {
        return shown();
    }
    let unit = match text.chars().next_back() {
        Some('s') => &texts.seconds,
        Some('m') => &texts.minutes,
        Some('h') => &texts.hours,
        Some('d') => &texts.days,
        _ => return shown(),
    };
    // The last character is ASCII, so this is a boundary of characters.
    text[..text.len() - 1].parse::<u64>().map_or_else(|_| shown(), |count| unit.of(&count.to_string()))
}
