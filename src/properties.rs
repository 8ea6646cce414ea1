//! Settings of property tests: the number of cases, the seed, and hostile texts. `.cargo/config.toml` sets the seed, so
//! each run has the same inputs; `make properties` sets another seed and more cases.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;

/// Reads a number from an environment variable.
fn number<T: std::str::FromStr<Err = std::num::ParseIntError>>(variable: &str) -> Option<T> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|fault| panic!("{variable}={text}: {fault}")))
}

/// The default number of cases of proptest, which `PROPTEST_CASES` overrides.
const USUAL: u32 = 256;

/// Returns the configuration for a property with at least `least` cases; see [`scaled`].
pub fn cases(least: u32) -> Config {
    Config::with_cases(scaled(least))
}

/// The number of cases of a property that has at least `least`. `PROPTEST_CASES` sets the number of cases for properties
/// without a number of their own; this number grows in proportion.
pub fn scaled(least: u32) -> u32 {
    in_proportion(least, number("PROPTEST_CASES").unwrap_or(USUAL).max(USUAL))
}

fn in_proportion(least: u32, usual: u32) -> u32 {
    u32::try_from(u64::from(least) * u64::from(usual) / u64::from(USUAL)).unwrap_or(u32::MAX)
}

/// The seed of this run.
pub fn seed() -> u64 {
    number("PROPTEST_RNG_SEED").unwrap_or_default()
}

/// The beginning of a line that a value has forged by a line break.
pub const FORGED: &str = "FORGED";

/// A text that a hostile user might try.
pub fn hostile() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "(?s).{0,12}",
        "[\u{0}-\u{20}\u{7f}-\u{9f}\u{2028}-\u{202e}\u{2066}-\u{2069}\u{feff}]{1,6}",
        select(vec![
            "\u{1b}]0;x\u{7}",
            "\u{1b}[2J",
            "\"",
            "\\",
            "'",
            "}",
            "${x}",
            "---\n",
            "\t- a: b",
            "null",
            "a"
        ])
        .prop_map(str::to_owned),
        select(vec!["\n", "\r\n", "\r", "\u{85}", "\u{2028}"]).prop_map(|end| format!("{end}{FORGED}")),
        (1..3_000_usize).prop_map(|length| "é\u{202e}".repeat(length)),
    ];
    prop::collection::vec(part, 1..5).prop_map(|parts| parts.concat())
}

#[test]
fn the_number_of_cases_scales_in_proportion() {
    assert_eq!((in_proportion(250, USUAL), in_proportion(10_000, USUAL)), (250, 10_000));
    assert_eq!((in_proportion(250, 100 * USUAL), in_proportion(10_000, 100 * USUAL)), (25_000, 1_000_000));
    assert_eq!(in_proportion(u32::MAX, 2 * USUAL), u32::MAX);
}

/// Without a fixed seed, each run would have different inputs, and a failure in one run would not be reproducible in
/// the next.
#[test]
fn the_seed_is_set() {
    assert!(number::<u64>("PROPTEST_RNG_SEED").is_some(), "run the tests by cargo, in this repository");
}
