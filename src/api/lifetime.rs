//! The durations in Templates: `never`, or digits followed by one of `s`, `m`, `h`, `d`.

use std::time::Duration;

use super::template::NEVER;

/// The time until an Instance is stopped or deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifetime {
    /// After this time; zero means immediately.
    After(Duration),
    /// Never.
    Never,
}

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LifetimeError {
    /// The text is neither `never` nor digits followed by a unit.
    #[error("{0:?} is not a duration: expected never, or digits and one of s, m, h, d, such as 30d")]
    Format(String),
    /// The duration exceeds 292 years: a 64-bit number of nanoseconds, the limit of durations in Go.
    #[error("{0:?} is longer than 106751 days")]
    TooLong(String),
}

impl Lifetime {
    /// Parses a duration; an empty text means never. Callers must treat an error as never and report it, so that a
    /// mistake in a Template does not delete Instances.
    pub fn parse(text: &str) -> Result<Self, LifetimeError> {
        if text == NEVER || text.is_empty() {
            return Ok(Self::Never);
        }
        let malformed = || LifetimeError::Format(text.to_owned());
        let unit = text.chars().next_back().ok_or_else(malformed)?;
        let digits = text.strip_suffix(unit).unwrap_or_default();
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            _ => return Err(malformed()),
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(malformed());
        }
        let total = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(seconds));
        let duration = total.map(Duration::from_secs).filter(|total| i64::try_from(total.as_nanos()).is_ok());
        duration.map(Self::After).ok_or_else(|| LifetimeError::TooLong(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_digits_and_a_unit() {
        let after = |seconds| Ok(Lifetime::After(Duration::from_secs(seconds)));
        for (text, lifetime) in [
            ("never", Ok(Lifetime::Never)),
            ("", Ok(Lifetime::Never)),
            ("0m", after(0)),
            ("45s", after(45)),
            ("30m", after(1800)),
            ("24h", after(86_400)),
            ("030d", after(2_592_000)),
            ("106751d", after(9_223_286_400)),
        ] {
            assert_eq!(Lifetime::parse(text), lifetime, "{text}");
        }
        for text in ["30", "d", "-1d", "1.5h", "1h30m", "1w", "Never", "1D", "1 d", "٣d", "1é"] {
            assert_eq!(Lifetime::parse(text), Err(LifetimeError::Format(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn no_duration_wraps_around() {
        for text in ["106752d", "213504d", "2562048h", "153722868m", "9223372037s", "99999999999999999999d"] {
            assert_eq!(Lifetime::parse(text), Err(LifetimeError::TooLong(text.to_owned())), "{text}");
        }
        assert!(Lifetime::After(Duration::from_secs(u64::MAX)) < Lifetime::Never);
    }
}
