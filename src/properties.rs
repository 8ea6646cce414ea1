//! How many random inputs a property test has, where they come from, and the texts among them. `.cargo/config.toml` sets the seed, so each run
//! has the same ones; `make properties` sets another seed and more cases.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;

/// The number in a variable of the environment.
fn number<T: std::str::FromStr<Err = std::num::ParseIntError>>(variable: &str) -> Option<T> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|fault| panic!("{variable}={text}: {fault}")))
}

/// A property of so many cases, or of more if `PROPTEST_CASES` asks for more.
pub fn cases(least: u32) -> Config {
    Config::with_cases(number("PROPTEST_CASES").unwrap_or(least).max(least))
}

/// The seed of this run.
pub fn seed() -> u64 {
    number("PROPTEST_RNG_SEED").unwrap_or_default()
}

/// What begins a line if a value has broken one.
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

/// Without it each run of the tests would have other inputs, and what fails in one would pass in the next.
#[test]
fn the_seed_is_set() {
    assert!(number::<u64>("PROPTEST_RNG_SEED").is_some(), "run the tests by cargo, in this repository");
}
