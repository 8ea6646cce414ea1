//! Kubernetes quantities: amounts of processor, memory or disk such as `500m`, `2G` or `1.5Gi`.
//!
//! Arithmetic and text forms are byte-for-byte the same as in the Go package `k8s.io/apimachinery/pkg/api/resource`,
//! because objects that the daemon writes must equal objects that Go programs wrote. They differ only for values that
//! no schema admits. A text without a digit and an amount above 10^29 are rejected, and an amount above the largest
//! suffix keeps the suffix (`1000E`, where Go prints `1`).

mod parse;
mod raw;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

pub use parse::QuantityError;
pub use raw::{PATTERN, RawQuantity};

/// The number of billionths in one. A billionth is the smallest amount.
const NANO: i128 = 1_000_000_000;
/// The number of decimal digits of a billionth: [`NANO`] is ten to this power.
const NANO_DIGITS: i32 = 9;
const DECIMAL_SUFFIXES: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY_SUFFIXES: [(&str, i32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The output format of an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Suffixes for powers of 1000: `500m`, `2G`.
    DecimalSi,
    /// Suffixes for powers of 1024: `512Mi`.
    BinarySi,
    /// Exponents that are multiples of three: `1500e6`.
    DecimalExponent,
}

/// An amount, exact to a billionth, with its output format. Comparisons only use the amounts.
#[derive(Debug, Clone)]
pub struct Quantity {
    nano: i128,
    format: Format,
    /// The parsed text, if Go would print it unchanged.
    text: Option<Box<str>>,
}

impl Quantity {
    /// The amount 0.
    pub const ZERO: Self = Self::new(0, Format::DecimalSi);

    const fn new(nano: i128, format: Format) -> Self {
        Self { nano, format, text: None }
    }

    /// An amount in whole units.
    pub fn from_int(value: i64) -> Self {
        Self::new(i128::from(value) * NANO, Format::DecimalSi)
    }

    /// An amount in thousandths.
    pub fn from_milli(value: i64) -> Self {
        Self::new(i128::from(value) * (NANO / 1000), Format::DecimalSi)
    }

    /// Whether the amount is 0.
    pub const fn is_zero(&self) -> bool {
        self.nano == 0
    }

    /// Whether the amount is below 0.
    pub const fn is_negative(&self) -> bool {
        self.nano < 0
    }

    /// The amount in whole units, rounded away from zero and limited to the range of 64 bits.
    pub fn value(&self) -> i64 {
        self.rounded(NANO)
    }

    /// The amount in thousandths, rounded away from zero and limited to the range of 64 bits.
    pub fn milli_value(&self) -> i64 {
        self.rounded(NANO / 1000)
    }

    /// The amount as a number with 15 exact digits, for metrics.
    pub fn approximate(&self) -> f64 {
        // The nearest number, as the standard library parses it. Every text of this form is valid.
        format!("{}e-{NANO_DIGITS}", self.nano).parse().unwrap_or_default()
    }

    /// The amount in this unit, rounded away from zero and limited to the range of 64 bits.
    fn rounded(&self, unit: i128) -> i64 {
        let limit = if self.nano < 0 { i64::MIN } else { i64::MAX };
        i64::try_from(self.nano / unit + (self.nano % unit).signum()).unwrap_or(limit)
    }

    /// The sum, in the format of `self`, or in the format of `other` if `self` is 0.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self::new(self.nano.saturating_add(other.nano), format)
    }

    /// The difference, in the format of `self`, or in the format of `other` if `self` is 0.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self::new(self.nano.saturating_sub(other.nano), format)
    }

    /// The product, in the format of `self`.
    #[must_use]
    pub fn times(&self, factor: i64) -> Self {
        Self::new(self.nano.saturating_mul(i128::from(factor)), self.format)
    }

    /// The smaller amount; `cap`, in its format, if they are equal.
    #[must_use]
    pub fn capped_at(self, cap: Self) -> Self {
        if self < cap { self } else { cap }
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            return formatter.write_str(text);
        }
        if self.is_zero() {
            return formatter.write_str("0");
        }
        let small = self.nano.abs() < 1024 * NANO;
        if self.format == Format::BinarySi && !small && self.nano % NANO == 0 {
            let (mantissa, times) = without_factor(self.nano / NANO, 1024, BINARY_SUFFIXES.len());
            let suffix = times.checked_sub(1).and_then(|index| BINARY_SUFFIXES.get(index));
            return write!(formatter, "{mantissa}{}", suffix.map_or("", |(suffix, _)| suffix));
        }
        if self.format == Format::DecimalExponent {
            let (mantissa, times) = without_factor(self.nano, 1000, usize::MAX);
            return match i32::try_from(times).unwrap_or(i32::MAX) * 3 - NANO_DIGITS {
                0 => write!(formatter, "{mantissa}"),
                exponent => write!(formatter, "{mantissa}e{exponent}"),
            };
        }
        let (mantissa, times) = without_factor(self.nano, 1000, DECIMAL_SUFFIXES.len() - 1);
        let suffix = DECIMAL_SUFFIXES.get(times).map_or("", |(suffix, _)| suffix);
        write!(formatter, "{mantissa}{suffix}")
    }
}

/// Divides by `factor` while there is no remainder, at most `limit` times. Returns the result and the number of
/// divisions.
fn without_factor(mut value: i128, factor: i128, limit: usize) -> (i128, usize) {
    let mut times = 0;
    while times < limit && value != 0 && value % factor == 0 {
        value /= factor;
        times += 1;
    }
    (value, times)
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        RawQuantity::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
