//! Amounts of processors, memory and disks, as people write them.

use super::words::Words;
use crate::api::Quantity;
use crate::api::usage::{Measure, Share};

/// The units of bytes, from the largest.
const UNITS: [(&str, i64); 5] =
    [("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

/// An amount without the name of what is measured: `4 GiB`, `2.5`.
pub fn amount(words: &Words, measure: &Measure, quantity: &Quantity) -> String {
    match measure {
        Measure::Instances => quantity.value().to_string(),
        Measure::Cpu => decimal(words, quantity.milli_value(), 1_000),
        Measure::Memory | Measure::Disk => bytes(words, quantity.value()),
        Measure::Other(_) => quantity.to_string(),
    }
}

/// An amount with the name of what is measured: `4 GiB of memory`, `2 cores`.
pub fn named(words: &Words, measure: &Measure, quantity: &Quantity) -> String {
    (words.amount)(measure, &amount(words, measure, quantity))
}

/// What is used of a limit, or may be: `2 of 4 cores`; without a limit only that there is none.
pub fn of_limit(words: &Words, share: &Share, part: &Quantity) -> String {
    let part = amount(words, &share.measure, part);
    let limit = share.limit.as_ref().map(|limit| amount(words, &share.measure, limit));
    let text = limit.map(|limit| (words.share)(&part, &limit)).unwrap_or(part);
    (words.amount)(&share.measure, &text)
}

/// A number of bytes.
fn bytes(words: &Words, count: i64) -> String {
    match UNITS.iter().find(|(_, unit)| count >= *unit) {
        Some((name, unit)) => format!("{} {name}", decimal(words, count, *unit)),
        None => format!("{count} B"),
    }
}

/// `part / whole` with one digit after the point, unless that is 0.
fn decimal(words: &Words, part: i64, whole: i64) -> String {
    let tenths = (i128::from(part) * 10 + i128::from(whole) / 2) / i128::from(whole.max(1));
    let (units, rest) = (tenths / 10, (tenths % 10).abs());
    if rest == 0 { units.to_string() } else { format!("{units}{}{rest}", words.decimal) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::dashboard::page::words::Language;

    #[test]
    fn amounts_are_written_in_the_unit_that_fits() {
        let (english, italian) = (Language::English.words(), Language::Italian.words());
        for (measure, text, shown) in [
            (Measure::Cpu, "2", "2"),
            (Measure::Cpu, "2500m", "2.5"),
            (Measure::Cpu, "10m", "0"),
            (Measure::Memory, "4Gi", "4 GiB"),
            (Measure::Memory, "1536Mi", "1.5 GiB"),
            (Measure::Memory, "500M", "476.8 MiB"),
            (Measure::Disk, "100", "100 B"),
            (Measure::Disk, "0", "0 B"),
            (Measure::Instances, "3", "3"),
            (Measure::Other("nvidia.com/gpu".to_owned()), "1", "1"),
        ] {
            let quantity: Quantity = text.parse().expect("a quantity");
            assert_eq!(amount(english, &measure, &quantity), shown, "{text}");
            assert_eq!(amount(italian, &measure, &quantity), shown.replace('.', ","), "{text}");
        }
    }
}
