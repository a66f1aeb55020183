#![allow(
    clippy::arithmetic_side_effects,
    reason = "numbers here are the test's own"
)]

use proptest::prelude::*;
use setpoint_proto::meta::Quantity;

use super::*;

fn amount(text: &str) -> Amount {
    Amount::parse(text).unwrap()
}

/// Cases of upstream's own tests (`TestQuantityParse`, `TestQuantityString`, `TestQuantityParseEmit`): what is read,
/// and how it is written.
const WRITTEN: &[(&str, &str)] = &[
    ("0", "0"),
    ("0n", "0"),
    ("0Ki", "0"),
    ("0Ti", "0"),
    ("00", "0"),
    ("1", "1"),
    // Binary.
    ("8Ki", "8Ki"),
    ("3Ei", "3Ei"),
    ("100Ti", "100Ti"),
    ("1024Mi", "1Gi"),
    ("307200Ki", "300Mi"),
    ("1025024Mi", "1001Gi"),
    ("1024Gi", "1Ti"),
    ("0.5Mi", "512Ki"),
    ("0.5Ki", "512"),
    ("1.5Gi", "1536Mi"),
    ("1500Ki", "1500Ki"),
    // Decimal.
    ("5n", "5n"),
    ("50k", "50k"),
    ("300T", "300T"),
    ("1000M", "1G"),
    ("1000", "1k"),
    ("1000m", "1"),
    ("0.001T", "1G"),
    ("1000u", "1m"),
    ("1.08", "1080m"),
    ("1080000000n", "1080m"),
    ("1234567M", "1234567M"),
    ("1025", "1025"),
    ("100.035k", "100035"),
    ("6.987654321G", "6987654321"),
    ("1.01E", "1010P"),
    // Exponents.
    ("1e3", "1e3"),
    ("1E-3", "1e-3"),
    ("12E2", "1200"),
    ("1e14", "100e12"),
    (".001e12", "1e9"),
    ("0.001e0", "1e-3"),
    ("1000e-12", "1e-9"),
    ("0.5e-2", "5e-3"),
    ("1.3E+6", "1300e3"),
    ("1.7E18", "1700e15"),
    // What looks like floating point.
    ("0.0005k", "500m"),
    ("0.00500", "5m"),
    ("9.01", "9010m"),
    // Rounded up at a billionth, and bounded.
    ("3.001n", "4n"),
    ("1.1E-9", "2e-9"),
    ("0.0000000001", "1n"),
    ("0.0000000005", "1n"),
    ("0.5e-9", "1e-9"),
    ("0.00000012345", "124n"),
    ("0.00000012354", "124n"),
    ("9Ei", "9223372036854775807"),
    ("9223372036854775807Ki", "9223372036854775807"),
    ("12E", "12E"),
    ("9223372036854775808", "9223372036854775808"),
    ("922337203685477580.8", "922337203685477580800m"),
    // A binary amount that is no whole number is written as a decimal.
    ("100.035Ki", "102435840m"),
    ("0.05Gi", "53687091200m"),
    (".001Ki", "1024m"),
    (".000001Ki", "1024u"),
    (".000000001Ki", "1024n"),
    ("0.000000000001Ki", "2n"),
    // Parts that are missing.
    (".001", "1m"),
    (".0001k", "100m"),
    ("1.", "1"),
    ("1.G", "1G"),
    (".", "0"),
    ("Ki", "0"),
];

#[test]
fn amounts_are_read_and_written_as_upstream_does() {
    for &(text, written) in WRITTEN {
        assert_eq!(amount(text).canonical(), written, "{text}");
        assert_eq!(amount(written).canonical(), written, "{text}");
        assert_eq!(amount(&format!("+{text}")).canonical(), written, "+{text}");
        let negative = if written == "0" {
            written.to_owned()
        } else {
            format!("-{written}")
        };
        assert_eq!(amount(&format!("-{text}")).canonical(), negative, "-{text}");
    }
}

#[test]
fn text_that_is_no_amount_is_refused() {
    for text in [
        "", "1.1.M", "1+1.0M", "0.1am", "aoeu", " 1", "1 ", "1 Mi", "1x", "1eX", "0x10", "1KiB",
        "1..2",
    ] {
        assert_eq!(Amount::parse(text), Err(Error::Malformed), "{text}");
    }
    for text in [
        "0.1mi", ".5i", "1i", "-3.01i", "-3.01e-", "1K", "1mi", "1e", "1M5", "--1",
    ] {
        assert_eq!(Amount::parse(text), Err(Error::Suffix), "{text}");
    }
}

#[test]
fn whole_units_and_thousandths_are_rounded_up() {
    assert_eq!(amount("100m").value(), 1);
    assert_eq!(amount("0.0001").millis(), 1);
    assert_eq!(amount("9.01").value(), 10);
    assert_eq!(amount("-9.01").value(), -10);
    assert_eq!(amount("-1500m").value(), -2);
    assert_eq!(amount("128Mi").value(), 128 << 20);
    assert_eq!(amount("8E").millis(), i64::MAX);
    assert_eq!(amount("-8E").millis(), i64::MIN);
    assert!(amount("1Ki") > amount("1k"));
    assert_ne!(amount("1Ki"), amount("1k"));
    assert!(amount("10000T") > amount("100Gi"));
    assert_eq!(
        amount("1") + amount("500m") - amount("0.25"),
        amount("1250m")
    );
}

#[test]
fn a_sum_with_nothing_is_written_as_the_other() {
    let zero = amount("0");
    for text in ["100m", "1Gi"] {
        assert_eq!((zero + amount(text)).canonical(), text);
        assert_eq!((amount(text) + zero).canonical(), text);
        assert_eq!((zero - amount(text)).canonical(), format!("-{text}"));
    }
}

/// As upstream: a binary suffix does not last where there is less than one unit.
#[test]
fn a_sum_that_begins_with_less_than_a_unit_is_written_as_a_decimal() {
    let half = amount("0.00048828125Ki");
    assert_eq!(half, amount("500m"));
    assert_eq!((half + amount("2047.5")).canonical(), "2048");
    assert_eq!((amount("1Ki") + amount("1024")).canonical(), "2Ki");
}

#[test]
fn an_amount_beyond_the_largest_suffix_keeps_its_digits() {
    assert_eq!(amount("1000E").canonical(), "1000E");
    let kibi = (0..8).fold(amount("4Ei"), |sum, _| sum + sum);
    assert_eq!(kibi.canonical(), "1024Ei");
}

/// Checks F13.
#[test]
fn sums_end_at_the_bounds() {
    let most = amount("1e1000");
    assert_eq!(most.canonical(), "100e27");
    assert_eq!(amount("1e28").canonical(), "10e27");
    assert_eq!(amount("1e29"), most);
    assert_eq!(most + most, most);
    assert_eq!(amount("-1e1000") - most, amount("-1e1000"));
    assert_eq!(most - most, Amount::ZERO);
    assert_eq!((amount("7Ei") + amount("7Ei")).value(), i64::MAX);
    assert!(amount("7Ei") + amount("7Ei") > amount("8Ei"));
    assert_eq!((amount("-7Ei") - amount("7Ei")).value(), i64::MIN);
}

/// Work that grew with the value, or with the square of the text, would not end.
#[test]
fn absurd_digits_and_exponents_are_read_at_once() {
    let long = |digit: &str| digit.repeat(1 << 20);
    let most = amount("1e29");
    for text in [
        "1e9223372036854775807".to_owned(),
        format!("{}E", long("9")),
        format!("1{}", long("0")),
    ] {
        assert_eq!(amount(&text), most);
    }
    assert_eq!(amount(&format!("{}1Ei", long("9"))).value(), i64::MAX);
    assert_eq!(amount("1e-9223372036854775808").canonical(), "1e-9");
    assert_eq!(amount("0e9223372036854775807"), Amount::ZERO);
    assert_eq!(amount(&format!("0.{}", long("0"))), Amount::ZERO);
    assert_eq!(amount(&format!("0.{}1", long("0"))).canonical(), "1n");
    assert_eq!(
        amount(&format!("1.{}1Ki", long("0"))),
        amount("1024.000000001")
    );
    assert_eq!(amount("0.00000000000000000001e20"), amount("1"));
    assert_eq!(amount("1000000000000000000000000e-24"), amount("1"));
    for text in ["1e9223372036854775808", &format!("1e{}", long("9"))] {
        assert_eq!(Amount::parse(text), Err(Error::Suffix));
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_as_the_same_amount(number in 0..1_000_000_u32, suffix in "n|u|m||k|M|G|T|P|Ki|Mi|Gi|e3|e-3|E2") {
        let read = amount(&format!("{number}{suffix}"));
        let written = read.canonical();
        let again = amount(&written);
        prop_assert_eq!(again, read);
        prop_assert_eq!(again.canonical(), written);
    }

    #[test]
    fn a_fraction_is_rounded_up_as_exact_arithmetic_would(whole in 0..1000_u64, fraction in "[0-9]{1,18}", power in 1..5_u32) {
        let suffix = BINARY[power as usize];
        let places = 10_i128.pow(fraction.len() as u32);
        let number = i128::from(whole) * places + fraction.parse::<i128>().unwrap();
        let exact = (number << (10 * power)).checked_mul(UNIT);
        prop_assume!(exact.is_some());
        let exact = exact.unwrap();
        let expected = exact / places + i128::from(exact % places != 0);
        prop_assert_eq!(amount(&format!("{whole}.{fraction}{suffix}")).billionths, expected);
    }

    #[test]
    fn what_the_wire_takes_is_an_amount(text in "[-+0-9.eEinumkKMGTPx]{0,9}|[-+]?[0-9.]{0,60}(n|Ki|[eE][-+]?[0-9]{0,21})") {
        let wire = serde_json::from_value::<Quantity>(text.as_str().into()).map_err(|error| error.to_string());
        let amount = Amount::parse(&text).map_err(|error| error.to_string());
        prop_assert_eq!(wire.map(drop), amount.map(|amount| drop(amount.canonical())));
    }
}

/// Upstream's `TestBuildQuantity`, and sizes that have no binary form.
#[test]
fn thousandths_are_written_in_the_notation_that_is_chosen() {
    let decimal = |millis| Amount::from_millis(millis).canonical();
    assert_eq!(
        [0, 1, 500, 1_500, 2_000].map(decimal),
        ["0", "1m", "500m", "1500m", "2"]
    );
    let binary = |millis| Amount::from_millis(millis).in_binary().canonical();
    let millis = [1_000, 1_024_000, 1_000_000, 1_048_576_000, 1_024_001];
    assert_eq!(millis.map(binary), ["1", "1Ki", "1k", "1Mi", "1024001m"]);
}
