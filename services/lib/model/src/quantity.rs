//! Amounts of a resource, as Kubernetes writes them: `100m`, `1.5`, `128Mi`, `1e3`.

use std::cmp::Ordering;
use std::ops::{Add, Sub};

/// Amounts are kept in billionths: nothing smaller can be written.
const UNIT: i128 = 1_000_000_000;
/// Larger amounts are taken to be this, as upstream does.
const MAX: i128 = i64::MAX as i128 * UNIT;

const DECIMAL: [(&str, i128); 10] = [
    ("n", 1),
    ("u", 1_000),
    ("m", 1_000_000),
    ("", UNIT),
    ("k", 1_000 * UNIT),
    ("M", 1_000_000 * UNIT),
    ("G", 1_000_000_000 * UNIT),
    ("T", 1_000_000_000_000 * UNIT),
    ("P", 1_000_000_000_000_000 * UNIT),
    ("E", 1_000_000_000_000_000_000 * UNIT),
];
const BINARY: [(&str, i128); 7] = [
    ("", UNIT),
    ("Ki", UNIT << 10),
    ("Mi", UNIT << 20),
    ("Gi", UNIT << 30),
    ("Ti", UNIT << 40),
    ("Pi", UNIT << 50),
    ("Ei", UNIT << 60),
];

/// The text is no amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no number in it.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Malformed,
    /// The letters after the number mean nothing.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// How an amount was written, and shall be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Decimal,
    Binary,
    Exponent,
}

/// An exact amount. Equal amounts are equal, however they were written.
#[derive(Clone, Copy, Debug)]
pub struct Amount {
    billionths: i128,
    notation: Notation,
}

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self {
        billionths: 0,
        notation: Notation::Decimal,
    };

    /// Reads an amount; what is finer than a billionth is rounded away from zero.
    ///
    /// # Errors
    /// When the text is no amount.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (notation, scale) = scale(suffix)?;
        let size = magnitude(number, scale)?.min(MAX);
        Ok(Self {
            billionths: if negative { -size } else { size },
            notation,
        })
    }

    /// An amount of whole units.
    pub const fn from_value(value: i64) -> Self {
        Self {
            billionths: value as i128 * UNIT,
            notation: Notation::Decimal,
        }
    }

    /// In thousandths, rounded away from zero.
    pub fn millis(self) -> i64 {
        self.in_parts_of(UNIT / 1_000)
    }

    /// In whole units, rounded away from zero.
    pub fn value(self) -> i64 {
        self.in_parts_of(UNIT)
    }

    /// The one way to write this amount: the largest suffix that leaves a whole number.
    pub fn canonical(self) -> String {
        let size = self.billionths.abs();
        let sign = if self.billionths < 0 { "-" } else { "" };
        let (number, suffix) = match self.notation {
            Notation::Binary if size >= 1_024 * UNIT => {
                largest(&BINARY, round_up(size, UNIT) * UNIT)
            }
            _ => largest(&DECIMAL, size),
        };
        let suffix = match self.notation {
            Notation::Exponent => exponent(suffix),
            _ => suffix.to_owned(),
        };
        format!("{sign}{number}{suffix}")
    }

    fn in_parts_of(self, part: i128) -> i64 {
        let parts = round_up(self.billionths.abs(), part) * self.billionths.signum();
        i64::try_from(parts).unwrap_or(if parts < 0 { i64::MIN } else { i64::MAX })
    }

    fn with(self, other: Self, billionths: i128) -> Self {
        let notation = if self.billionths == 0 {
            other.notation
        } else {
            self.notation
        };
        Self {
            billionths: billionths.clamp(-MAX, MAX),
            notation,
        }
    }
}

/// The size of one unit of the suffix, in billionths, as a fraction.
fn scale(suffix: &str) -> Result<(Notation, (i128, i128)), Error> {
    let find = |table: &[(&str, i128)]| {
        table
            .iter()
            .find(|(name, _)| *name == suffix)
            .map(|(_, size)| (*size, 1))
    };
    if let Some(size) = find(&DECIMAL) {
        return Ok((Notation::Decimal, size));
    }
    if let Some(size) = find(&BINARY) {
        return Ok((Notation::Binary, size));
    }
    let power = suffix.strip_prefix(['e', 'E']).ok_or(Error::Suffix)?;
    let power: i32 = power.parse().map_err(|_| Error::Suffix)?;
    // Beyond these powers every number but zero is too large, or smaller than a billionth.
    let size = 10_i128.pow(power.unsigned_abs().min(18));
    Ok((
        Notation::Exponent,
        if power < 0 {
            (UNIT, size)
        } else {
            (UNIT * size, 1)
        },
    ))
}

/// The digits times the scale, rounded up, but never much above [`MAX`].
fn magnitude(number: &str, (times, per): (i128, i128)) -> Result<i128, Error> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(Error::Malformed);
    }
    let digit = |byte: u8| i128::from(byte - b'0');
    let whole = whole
        .bytes()
        .fold(0_i128, |sum, byte| (sum * 10 + digit(byte)).min(MAX));
    // Eighteen places reach below a billionth for every suffix; further ones only decide about rounding up.
    let (near, far) = fraction.split_at(fraction.len().min(18));
    let tail = near
        .bytes()
        .fold(0_i128, |sum, byte| sum * 10 + digit(byte));
    let places = 10_i128.pow(near.len() as u32);
    let rest = i128::from(far.bytes().any(|byte| byte != b'0'));
    let large = whole
        .checked_mul(times)
        .map_or(MAX, |size| round_up(size, per));
    let small = tail.saturating_mul(times);
    Ok(large
        .saturating_add(round_up(small, places.saturating_mul(per)))
        .saturating_add(rest))
}

fn round_up(size: i128, part: i128) -> i128 {
    size / part + i128::from(size % part != 0)
}

/// The number and the largest suffix that leaves no remainder.
fn largest(table: &[(&'static str, i128)], size: i128) -> (i128, &'static str) {
    if size == 0 {
        return (0, "");
    }
    let whole = table.iter().rev().find(|(_, unit)| size % unit == 0);
    let (suffix, unit) =
        whole.expect("each table ends in a unit that divides what it is asked for");
    (size / unit, suffix)
}

fn exponent(suffix: &str) -> String {
    let place = DECIMAL
        .iter()
        .position(|(name, _)| *name == suffix)
        .unwrap_or_default();
    match place as i32 * 3 - 9 {
        0 => String::new(),
        power => format!("e{power}"),
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, self.billionths + other.billionths)
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, self.billionths - other.billionths)
    }
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.billionths == other.billionths
    }
}

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Self) -> Ordering {
        self.billionths.cmp(&other.billionths)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn canonical(text: &str) -> String {
        Amount::parse(text).unwrap().canonical()
    }

    #[test]
    fn amounts_are_written_as_go_writes_them() {
        for (text, written) in [
            ("0", "0"),
            ("0.5", "500m"),
            ("1024Mi", "1Gi"),
            ("1500m", "1500m"),
            ("1000m", "1"),
            ("1000", "1k"),
            ("1e3", "1e3"),
            ("12E2", "1200"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("1500Ki", "1500Ki"),
            ("-5m", "-5m"),
            ("+2", "2"),
            (".5", "500m"),
            ("5.", "5"),
            ("100u", "100u"),
            ("1E", "1E"),
            ("1e-3", "1e-3"),
            ("0.0000000001", "1n"),
            ("9223372036854775808", "9223372036854775807"),
            ("0Mi", "0"),
        ] {
            assert_eq!(canonical(text), written, "{text}");
        }
    }

    #[test]
    fn text_that_is_no_amount_is_refused() {
        for text in ["", ".", "-", "Mi", "1.2.3"] {
            assert_eq!(Amount::parse(text).unwrap_err(), Error::Malformed, "{text}");
        }
        for text in ["1x", "1 Mi", "1mi", "1e", "1eX", "0x10", "1KiB"] {
            assert_eq!(Amount::parse(text).unwrap_err(), Error::Suffix, "{text}");
        }
    }

    #[test]
    fn whole_units_and_thousandths_are_rounded_up() {
        let amount = |text| Amount::parse(text).unwrap();
        assert_eq!(amount("100m").value(), 1);
        assert_eq!(amount("0.0001").millis(), 1);
        assert_eq!(amount("-1500m").value(), -2);
        assert_eq!(amount("128Mi").value(), 128 << 20);
        assert_eq!(amount("8E").millis(), i64::MAX);
        assert!(amount("1Ki") > amount("1k"));
        assert_eq!(
            amount("1") + amount("500m") - amount("0.25"),
            amount("1250m")
        );
    }

    proptest! {
        #[test]
        fn what_is_written_reads_as_the_same_amount(number in 0..1_000_000_u32, suffix in "n|u|m||k|M|G|T|P|Ki|Mi|Gi|e3|e-3|E2") {
            let amount = Amount::parse(&format!("{number}{suffix}")).unwrap();
            let written = amount.canonical();
            let again = Amount::parse(&written).unwrap();
            prop_assert_eq!(again, amount);
            prop_assert_eq!(again.canonical(), written);
        }

        #[test]
        fn no_text_makes_the_parser_fall_over(text in "[-+0-9.eEinumkKMGTP]{0,60}") {
            let _ = Amount::parse(&text).map(Amount::canonical);
        }
    }
}
