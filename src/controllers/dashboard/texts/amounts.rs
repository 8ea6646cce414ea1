//! Amounts of processors, memory and disks.

use super::catalogue::Texts;
use crate::api::Quantity;
use crate::api::usage::Measure;

/// The units of bytes, from the largest.
const UNITS: [(&str, i64); 5] =
    [("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];

impl Texts {
    /// Returns an amount without the name of its measure: `4 GiB`, `2.5`.
    pub fn quantity(&self, measure: &Measure, quantity: &Quantity) -> String {
        match measure {
            Measure::Instances => quantity.value().to_string(),
            Measure::Cpu => self.decimal(quantity.milli_value(), 1_000),
            Measure::Memory | Measure::Disk => self.bytes(quantity.value()),
            Measure::Other(_) => quantity.to_string(),
        }
    }

    /// Returns an amount with its measure: `4 GiB of memory`, `2 cores`.
    pub fn named(&self, measure: &Measure, quantity: &Quantity) -> String {
        self.amount(measure, &self.quantity(measure, quantity))
    }

    fn bytes(&self, count: i64) -> String {
        match UNITS.iter().find(|(_, unit)| count >= *unit) {
            Some((name, unit)) => format!("{} {name}", self.decimal(count, *unit)),
            None => format!("{count} B"),
        }
    }

    /// Returns `part / whole` with one digit after the point, unless that digit is 0.
    fn decimal(&self, part: i64, whole: i64) -> String {
        let tenths = (i128::from(part) * 10 + i128::from(whole) / 2) / i128::from(whole.max(1));
        let (units, rest) = (tenths / 10, (tenths % 10).abs());
        if rest == 0 { units.to_string() } else { format!("{units}{}{rest}", self.decimal) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Language;
    use crate::controllers::dashboard::texts::texts;

    #[test]
    fn amounts_are_written_in_the_unit_that_fits() {
        let (english, italian) = (texts(Language::ENGLISH), texts(Language::of("it").expect("Italian")));
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
            assert_eq!(english.quantity(&measure, &quantity), shown, "{text}");
            assert_eq!(italian.quantity(&measure, &quantity), shown.replace('.', ","), "{text}");
        }
    }
}
