//! Times relative to now, with the exact time on hover.

use jiff::Timestamp;
use maud::{Markup, html};

use super::view::View;
use crate::api::lifetime::Lifetime;
use crate::api::shown::shown;

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
    let name = |names: &'static [String], position: i8| {
        usize::try_from(position).ok().and_then(|position| names.get(position)).map_or("", String::as_str)
    };
    let weekday = name(&texts.weekdays, zoned.weekday().to_monday_zero_offset());
    let month = name(&texts.months, zoned.month() - 1);
    format!("{weekday} {} {month} {}, {}", zoned.day(), zoned.year(), zoned.strftime("%H:%M %Z"))
}

/// A relative time, with the exact one on hover.
pub fn ago(view: &View<'_>, at: Timestamp) -> Markup {
    html! { time datetime=(at) title=(exact(view, at)) { (relative(view, at)) } }
}

/// Returns a number of seconds as on a stopwatch: `1:30`, `2:05:00`.
pub fn clock(seconds: i64) -> String {
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Returns a duration of a Template, such as `7d`, in words. An invalid duration is shown unchanged.
pub fn duration(view: &View<'_>, text: &str) -> String {
    let texts = view.texts();
    let units = [('s', &texts.seconds), ('m', &texts.minutes), ('h', &texts.hours), ('d', &texts.days)];
    let count = |sign: char| text.strip_suffix(sign)?.parse::<u64>().ok();
    match units.into_iter().find_map(|(sign, unit)| Some((count(sign)?, unit))) {
        Some((count, unit)) if Lifetime::parse(text).is_ok() => unit.of(&count.to_string()),
        _ => shown(text).into_owned(),
    }
}
