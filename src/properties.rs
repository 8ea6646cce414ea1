//! How many random inputs a property test has, and where they come from. `.cargo/config.toml` sets the seed, so each run
//! has the same ones; `make properties` sets another seed and more cases.

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

/// Without it each run of the tests would have other inputs, and what fails in one would pass in the next.
#[test]
fn the_seed_is_set() {
    assert!(number::<u64>("PROPTEST_RNG_SEED").is_some(), "run the tests by cargo, in this repository");
}
