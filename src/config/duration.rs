//! Durations in the configuration: `30s`, `5m`, `24h`, `7d`.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::time::Duration;

use super::keys::text;

/// The units with their lengths in milliseconds, from the longest to the shortest.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The longest duration in milliseconds, a hundred years, so that a date plus a duration is always valid.
const LONGEST: u64 = 36_500 * 86_400_000;

/// A duration from zero to a hundred years, in whole milliseconds. It is written with the units `d`, `h`,
/// `m`, `s` and `ms`, each at most once and longer ones first: `90m`, `1h30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConfigDuration(Duration);

/// The error for a text that is not a duration, or for one above a hundred years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected {}", DURATION.expected)]
pub struct DurationError;

impl ConfigDuration {
    /// A duration in seconds, limited to a hundred years.
    pub const fn from_secs(seconds: u64) -> Self {
        Self::from_millis(seconds.saturating_mul(1_000))
    }

    /// A duration in milliseconds, limited to a hundred years.
    pub const fn from_millis(milliseconds: u64) -> Self {
        let length = if milliseconds < LONGEST { milliseconds } else { LONGEST };
        Self(Duration::from_millis(length))
    }

    /// The duration as the type of the standard library.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl From<ConfigDuration> for Duration {
    fn from(duration: ConfigDuration) -> Self {
        duration.0
    }
}

impl FromStr for ConfigDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut rest = text;
        let mut units = UNITS.iter();
        let mut total = 0_u64;
        while !rest.is_empty() {
            let (number, tail) = split(rest, |byte| byte.is_ascii_digit());
            let (unit, tail) = split(tail, |byte| byte.is_ascii_alphabetic());
            // The iterator does not go back, so that longer units come first and each comes once.
            let (_, length) = units.find(|(name, _)| *name == unit).ok_or(DurationError)?;
            let number: u64 = number.parse().map_err(|_| DurationError)?;
            let part = number.checked_mul(*length).ok_or(DurationError)?;
            total = total.checked_add(part).ok_or(DurationError)?;
            rest = tail;
        }
        if text.is_empty() || total > LONGEST { Err(DurationError) } else { Ok(Self::from_millis(total)) }
    }
}

/// Splits a text before the first byte that does not match. `matches` only accepts ASCII, so that this is
/// always between two characters.
fn split(text: &str, matches: fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !matches(byte)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

impl fmt::Display for ConfigDuration {
    /// Writes the shortest text for the duration; of two that are equally short, the one with a single unit.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value is at most `LONGEST`.
        let total = u64::try_from(self.0.as_millis()).unwrap_or(LONGEST);
        if total == 0 {
            return formatter.write_str("0s");
        }
        let single = UNITS
            .iter()
            .find(|(_, length)| total.is_multiple_of(*length))
            .map(|(unit, length)| format!("{}{unit}", total / length));
        let mut mixed = String::new();
        let mut rest = total;
        for (unit, length) in UNITS {
            if rest >= length {
                write!(mixed, "{}{unit}", rest / length)?;
                rest %= length;
            }
        }
        formatter.write_str(&single.filter(|single| single.len() <= mixed.len()).unwrap_or(mixed))
    }
}

text!(
    ConfigDuration,
    DURATION = "crownlabs-duration",
    "a duration such as 30s, 5m, 24h or 7d, at most 36500d",
    "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$"
);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Option<u64> {
        text.parse::<ConfigDuration>().ok().and_then(|duration| duration.0.as_millis().try_into().ok())
    }

    #[test]
    fn units_are_read() {
        let cases = [
            ("0s", 0),
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
            ("1h30m", 5_400_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("007s", 7_000),
            ("90s", 90_000),
        ];
        for (text, milliseconds) in cases {
            assert_eq!(read(text), Some(milliseconds), "{text}");
        }
    }

    #[test]
    fn invalid_durations_are_rejected() {
        let texts = [
            "", "30", "s", "30 s", " 30s", "30s ", "-30s", "+30s", "1.5h", "30S", "1w", "1y", "30sec",
            "30m1h", "1h1h", "1ms1s", "1h30", "P1D", "٣s", "5µs", "1ns", "é",
        ];
        for text in texts {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_longest_is_a_hundred_years() {
        assert_eq!(read("36500d"), Some(LONGEST));
        assert_eq!(read("36500d1ms"), None);
        // Beyond 64 bits: the number, its product with the unit, the sum.
        assert_eq!(read("18446744073709551616ms"), None);
        assert_eq!(read("18446744073709551615d"), None);
        assert_eq!(read("1s18446744073709551615ms"), None);
        assert_eq!(ConfigDuration::from_secs(u64::MAX).get().as_millis(), u128::from(LONGEST));
    }

    #[test]
    fn the_shortest_form_is_written() {
        let cases = [
            (0, "0s"),
            (1, "1ms"),
            (1_000, "1s"),
            (1_500, "1500ms"),
            (60_000, "1m"),
            (61_000, "61s"),
            (5_400_000, "90m"),
            (3_601_000, "1h1s"),
            (86_400_000, "1d"),
            (90_000_000, "25h"),
            (604_800_000, "7d"),
        ];
        for (milliseconds, text) in cases {
            assert_eq!(ConfigDuration::from_millis(milliseconds).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn a_written_duration_reads_back(milliseconds in 0..=LONGEST) {
            let duration = ConfigDuration::from_millis(milliseconds);
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn round_lengths_read_back(count in 0_u64..30_000, (_, length) in prop::sample::select(UNITS.to_vec())) {
            let duration = ConfigDuration::from_millis(count * length);
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "\\PC*|[0-9dhms]{0,24}") {
            if let Ok(duration) = text.parse::<ConfigDuration>() {
                prop_assert!(duration.get().as_millis() <= u128::from(LONGEST));
                prop_assert_eq!(duration.to_string().parse(), Ok(duration));
            }
        }
    }
}
