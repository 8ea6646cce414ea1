use std::cmp::Ordering;

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::*;

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// A line of `tests/recorded/quantities.json`; see the README there.
#[derive(Debug, Deserialize)]
struct Vector {
    a: String,
    #[serde(default)]
    b: String,
    #[serde(default)]
    invalid: bool,
    #[serde(default)]
    canonical: String,
    #[serde(default)]
    sum: String,
    #[serde(default)]
    difference: String,
    #[serde(default)]
    factor: i64,
    #[serde(default)]
    product: String,
    compare: i8,
    value: i64,
    milli: i64,
}

#[test]
fn results_equal_those_of_apimachinery() {
    let vectors: Vec<Vector> =
        serde_json::from_str(include_str!("../../../tests/recorded/quantities.json")).unwrap();
    assert!(vectors.len() >= 400);
    for vector in vectors {
        if vector.invalid {
            assert!(vector.a.parse::<Quantity>().is_err(), "{vector:?}");
            continue;
        }
        let (a, b) = (quantity(&vector.a), quantity(&vector.b));
        assert_eq!(a.to_string(), vector.canonical, "{vector:?}");
        assert_eq!(a.plus(&b).to_string(), vector.sum, "{vector:?}");
        assert_eq!(a.minus(&b).to_string(), vector.difference, "{vector:?}");
        assert_eq!(a.times(vector.factor).to_string(), vector.product, "{vector:?}");
        assert_eq!(a.cmp(&b) as i8, vector.compare, "{vector:?}");
        // The value is not recorded if it does not fit into 64 bits.
        if vector.value >= 0 {
            assert_eq!((a.value(), a.milli_value()), (vector.value, vector.milli), "{vector:?}");
        }
    }
}

#[test]
fn text_is_canonical() {
    // The expected texts are the output of the Go package.
    let cases = [
        ("8", "8"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("5.5", "5500m"),
        ("2000", "2k"),
        ("2000000000", "2G"),
        ("12000M", "12G"),
        ("1e3", "1e3"),
        ("1e9", "1e9"),
        ("1.5G", "1500M"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("1024Mi", "1Gi"),
        ("4096Mi", "4Gi"),
        ("1500Mi", "1500Mi"),
        ("1000Gi", "1000Gi"),
        ("1000000Ki", "1000000Ki"),
        ("1073741824", "1073741824"),
        ("0.1Ki", "102400m"),
        ("0.1n", "1n"),
        ("0Gi", "0"),
    ];
    for (text, canonical) in cases {
        assert_eq!(quantity(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn a_sum_keeps_the_format_of_its_left_side() {
    // The expected texts are the output of the Go package.
    let cases = [
        ("15Gi", "25Gi", "40Gi"),
        ("15Gi", "20G", "35259890Ki"),
        ("20G", "15Gi", "36106127360"),
        ("2G", "500M", "2500M"),
        ("1.5G", "500M", "2G"),
        ("1Gi", "500M", "1573741824"),
        ("2Gi", "500M", "2647483648"),
        ("4096Mi", "500M", "4794967296"),
        ("1.5Gi", "500M", "2110612736"),
        ("1500Mi", "500M", "2072864000"),
        ("1000000Ki", "500M", "1524000000"),
        ("2000000000", "500M", "2500M"),
        ("1e9", "500M", "1500e6"),
        ("2", "500m", "2500m"),
        ("0", "15Gi", "15Gi"),
        ("0Gi", "15G", "15G"),
    ];
    for (a, b, sum) in cases {
        assert_eq!(quantity(a).plus(&quantity(b)).to_string(), sum, "{a} + {b}");
    }
    assert_eq!(Quantity::default().to_string(), "0");
}

#[test]
fn shares_of_processors_are_exact() {
    // Cores, percent, request.
    for (cores, percent, request) in [(2, 25, "500m"), (4, 25, "1"), (2, 100, "2")] {
        assert_eq!(Quantity::from_milli(cores * percent * 10).to_string(), request);
    }
    assert_eq!(Quantity::from_int(2).plus(&quantity("500m")).to_string(), "2500m");
}

#[test]
fn the_cap_wins_a_tie() {
    let capped = |a: &str, cap: &str| quantity(a).capped_at(quantity(cap)).to_string();
    assert_eq!(capped("1Gi", "1073741824"), "1073741824");
    assert_eq!(capped("1073741824", "1Gi"), "1Gi");
    assert_eq!(capped("10", "25"), "10");
    assert_eq!(capped("60Gi", "50G"), "50G");
}

#[test]
fn an_error_states_the_reason() {
    let message = |text: &str| text.parse::<Quantity>().unwrap_err().to_string();
    assert_eq!(
        message("lots"),
        r#""lots" is not a quantity: expected a number and a suffix, such as 500m, 2G or 1.5Gi"#
    );
    assert_eq!(message("1GB"), r#""1GB" is not a quantity: unknown suffix "GB""#);
    assert_eq!(message("1e40"), r#""1e40" is too large"#);
    assert!(message("").starts_with(r#""" is not a quantity"#));
}

#[test]
fn amounts_that_go_cannot_print_keep_their_suffix() {
    assert_eq!(quantity("1000E").to_string(), "1000E");
    assert_eq!(quantity("4Ei").times(1024).to_string(), "4096Ei");
    assert_eq!(quantity("16Ei"), quantity("9223372036854775807"), "the limit of binary amounts");
    assert_eq!(quantity("999999999999999999999999999999999999999999Ei"), quantity("16Ei"));
}

#[test]
fn amounts_that_are_too_large_for_an_integer_are_limited() {
    assert_eq!(quantity("1e25").value(), i64::MAX);
    assert_eq!(quantity("-1e25").milli_value(), i64::MIN);
    assert_eq!(quantity("1e25").times(i64::MAX).times(i64::MAX).times(-1).value(), i64::MIN);
}

#[test]
fn texts_and_numbers_are_read_and_texts_are_written() {
    let read = |value| serde_json::from_value::<RawQuantity>(value).unwrap();
    assert_eq!(read(json!(8)), RawQuantity::from("8"));
    assert_eq!(read(json!(-8)), RawQuantity::from("-8"));
    assert_eq!(read(json!(u64::MAX)), RawQuantity::from("18446744073709551615"));
    assert_eq!(read(json!(0.5)).parse(), Ok(quantity("500m")));
    assert_eq!(read(json!("0.5")).as_str(), "0.5");
    assert_eq!(read(json!("much")).as_str(), "much");
    assert!(read(json!("much")).parse().is_err());
    assert!(serde_json::from_value::<RawQuantity>(json!(true)).is_err());
    assert_eq!(serde_json::to_value(read(json!(8))).unwrap(), json!("8"));
    assert_eq!(RawQuantity::default().parse(), Ok(Quantity::ZERO));
    assert_eq!(RawQuantity::from(&quantity("1.5Gi")).to_string(), "1536Mi");
    assert_eq!(serde_json::from_value::<Quantity>(json!(8)).unwrap(), Quantity::from_int(8));
    assert!(serde_json::from_value::<Quantity>(json!("much")).is_err());
    assert_eq!(serde_json::to_value(quantity("1.5Gi")).unwrap(), json!("1536Mi"));
}

/// Texts that the schema allows.
fn texts() -> impl Strategy<Value = String> {
    "[-+]?[0-9]{1,8}(\\.[0-9]{0,6})?(n|u|m|k|M|G|T|P|Ki|Mi|Gi|Ti|e[0-9]|E-[0-9])?"
}

proptest! {
    #[test]
    fn printing_keeps_the_amount(text in texts()) {
        let amount = quantity(&text);
        let printed = amount.to_string();
        prop_assert_eq!(&quantity(&printed), &amount);
        // A computed amount is printed in its canonical form, which is stable.
        let computed = amount.plus(&Quantity::ZERO);
        let printed = computed.to_string();
        prop_assert_eq!(quantity(&printed).to_string(), printed.clone());
        prop_assert!(!printed.contains('.'), "{}", printed);
    }

    #[test]
    fn arithmetic_equals_integer_arithmetic(a in texts(), b in texts(), factor in 0_i64..100) {
        let (a, b) = (quantity(&a), quantity(&b));
        prop_assert_eq!(a.plus(&b), b.plus(&a));
        prop_assert_eq!(&a.plus(&b).minus(&b), &a);
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        prop_assert_eq!(a.cmp(&b), a.minus(&b).cmp(&Quantity::ZERO));
        prop_assert_eq!(a.times(factor).plus(&b.times(factor)), a.plus(&b).times(factor));
        let smaller = a.clone().capped_at(b.clone());
        prop_assert!(smaller <= a && smaller <= b);
        prop_assert!(smaller == a || smaller.cmp(&b) == Ordering::Equal);
    }

    #[test]
    fn any_text_is_parsed_or_rejected(text in "[-+0-9.eEinumkKMGTP]{0,40}") {
        if let Ok(amount) = text.parse::<Quantity>() {
            prop_assert_eq!(amount.value() == 0, amount.is_zero());
        }
    }
}
