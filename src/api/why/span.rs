//! Spans of time as English text.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The units in seconds, longest first.
const UNITS: [(&str, i64); 4] = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];

/// Formats the time from `since` to `now` in its two longest units: `3 d 4 h`, `12 min`, `0 s`.
pub fn span(since: &Time, now: Timestamp) -> String {
    let mut left = now.duration_since(since.0).as_secs().max(0);
    let mut parts = Vec::new();
    for (unit, length) in UNITS {
        let count = left / length;
        left %= length;
        if count > 0 {
            parts.push(format!("{count} {unit}"));
        } else if !parts.is_empty() {
            break;
        }
        // Seconds are left out once the span is longer than a minute.
        if parts.len() == 2 || unit == "min" && !parts.is_empty() {
            break;
        }
    }
    if parts.is_empty() { "0 s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::time;

    #[test]
    fn a_span_has_two_units_at_most() {
        let since = Time(time("2026-01-01T00:00:00Z"));
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (719, "11 min"),
            (3_600, "1 h"),
            (3_725, "1 h 2 min"),
            (90_000, "1 d 1 h"),
            (86_459, "1 d"),
            (-5, "0 s"),
        ] {
            let now = since.0 + jiff::SignedDuration::from_secs(seconds);
            assert_eq!(span(&since, now), text, "{seconds}");
        }
    }
}
