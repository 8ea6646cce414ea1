//! Parsing of quantities, as `ParseQuantity` of apimachinery does it.

use std::str::FromStr;

use super::{BINARY_SUFFIXES, DECIMAL_SUFFIXES, Format, NANO, NANO_DIGITS, Quantity};

/// The largest amount in binary format, the largest signed 64-bit integer.
const BINARY_LIMIT: i128 = 9_223_372_036_854_775_807 * NANO;
/// The limit for the digits of a number that Go keeps in its short representation (a 64-bit integer and a scale).
const SHORT_DIGITS: i32 = 18;
/// The same limit for a number with a binary suffix.
const SHORT_BINARY_DIGITS: i32 = 14;

/// The reason why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text is not a number followed by a suffix.
    #[error("{0:?} is not a quantity: expected a number and a suffix, such as 500m, 2G or 1.5Gi")]
    Format(String),
    /// The number is not followed by a known suffix.
    #[error("{text:?} is not a quantity: unknown suffix {suffix:?}")]
    Suffix {
        /// The whole text.
        text: String,
        /// The text after the number.
        suffix: String,
    },
    /// The amount is above 10^29.
    #[error("{0:?} is too large")]
    TooLarge(String),
}

/// The parts of a quantity's text.
struct Parts<'a> {
    negative: bool,
    /// Digits before the decimal point, without leading zeros; `0` for no digits.
    whole: &'a str,
    /// Digits after the decimal point.
    fraction: &'a str,
    suffix: &'a str,
}

impl<'a> Parts<'a> {
    /// Splits a text into its parts; `None` if it has no digit.
    fn split(text: &'a str) -> Option<Self> {
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (digits, rest) = leading_digits(unsigned);
        let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), leading_digits);
        let whole = digits.trim_start_matches('0');
        (digits.len() + fraction.len() > 0).then_some(Self {
            negative: text.starts_with('-'),
            whole: if whole.is_empty() { "0" } else { whole },
            fraction,
            suffix,
        })
    }

    /// The exponent and the format of the suffix; `None` for an unknown suffix.
    fn exponent(&self) -> Option<(i32, Format)> {
        let known = [(&DECIMAL_SUFFIXES[..], Format::DecimalSi), (&BINARY_SUFFIXES[..], Format::BinarySi)];
        for (list, format) in known {
            if let Some((_, exponent)) = list.iter().find(|(suffix, _)| *suffix == self.suffix) {
                return Some((*exponent, format));
            }
        }
        let exponent = self.suffix.strip_prefix(['e', 'E'])?;
        Some((exponent.parse().ok()?, Format::DecimalExponent))
    }

    /// The number of digits before and after the decimal point.
    fn digits(&self) -> i32 {
        i32::try_from(self.whole.len() + self.fraction.len()).unwrap_or(i32::MAX)
    }

    fn fraction_digits(&self) -> i32 {
        i32::try_from(self.fraction.len()).unwrap_or(i32::MAX)
    }

    /// The number times `10^exponent` in billionths, rounded up; `None` if it is too large.
    fn decimal(&self, exponent: i32) -> Option<i128> {
        let digits = format!("{}{}", self.whole, self.fraction);
        let shift = exponent.checked_sub(self.fraction_digits())?.checked_add(NANO_DIGITS)?;
        if let Ok(shift) = u32::try_from(shift) {
            let digits: i128 = digits.parse().ok()?;
            return if digits == 0 { Some(0) } else { digits.checked_mul(10_i128.checked_pow(shift)?) };
        }
        let cut = usize::try_from(shift.unsigned_abs()).ok()?;
        let (kept, lost) = digits.split_at(digits.len().saturating_sub(cut));
        let kept: i128 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
        kept.checked_add(i128::from(lost.bytes().any(|digit| digit != b'0')))
    }

    /// The number times `2^exponent` in billionths, rounded up and limited to [`BINARY_LIMIT`].
    fn binary(&self, exponent: i32) -> i128 {
        let unit = NANO << exponent;
        // Computes 0.d1d2…dn times the unit, from the last digit to the first.
        let mut fraction = 0;
        let mut inexact = false;
        for digit in self.fraction.bytes().rev() {
            fraction += i128::from(digit - b'0') * unit;
            inexact |= fraction % 10 != 0;
            fraction /= 10;
        }
        let whole = self.whole.parse().ok().and_then(|whole: i128| whole.checked_mul(unit));
        let sum = whole.and_then(|whole| whole.checked_add(fraction + i128::from(inexact)));
        sum.map_or(BINARY_LIMIT, |sum| sum.min(BINARY_LIMIT))
    }

    /// Whether Go prints this number as it was typed: the number fits into the short representation and looks
    /// canonical.
    fn kept_as_typed(&self, exponent: i32, format: Format) -> bool {
        if format == Format::BinarySi {
            // Each factor of 2^10 counts as three digits.
            let fits = self.digits() + exponent * 3 / 10 <= SHORT_BINARY_DIGITS;
            return self.fraction.is_empty()
                && fits
                && !self.whole.parse::<u64>().is_ok_and(|whole| whole % 8 == 0);
        }
        let Some(scale) = exponent.checked_sub(self.fraction_digits()) else { return false };
        let ends_in_zeros = self.whole.bytes().chain(self.fraction.bytes()).rev().take(3);
        SHORT_DIGITS >= self.digits()
            && scale >= -NANO_DIGITS
            && scale % 3 == 0
            && !self.whole.starts_with('0')
            && !(self.digits() >= 3 && ends_in_zeros.eq(*b"000"))
    }
}

/// Splits a text after its leading digits.
fn leading_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        let malformed = || QuantityError::Format(text.to_owned());
        let parts = Parts::split(text).ok_or_else(malformed)?;
        let unknown = || QuantityError::Suffix { text: text.to_owned(), suffix: parts.suffix.to_owned() };
        let (exponent, format) = parts.exponent().ok_or_else(unknown)?;
        let too_large = || QuantityError::TooLarge(text.to_owned());
        let nano = match format {
            Format::BinarySi => parts.binary(exponent),
            _ => parts.decimal(exponent).ok_or_else(too_large)?,
        };
        let kept = parts.kept_as_typed(exponent, format);
        let below_one = format == Format::BinarySi && 0 < nano && nano < NANO;
        Ok(Self {
            nano: if parts.negative { -nano } else { nano },
            format: if below_one { Format::DecimalSi } else { format },
            text: kept.then(|| text.into()),
        })
    }
}
