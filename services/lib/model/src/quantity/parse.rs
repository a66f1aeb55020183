//! The grammar of amounts: a sign, a decimal, and a suffix or an exponent. A part that is missing is zero, as upstream.

use super::{Amount, BINARY, BINARY_MAX, DECIMAL, Error, MAX, Notation, UNIT};

/// Letters of which suffixes are made.
const LETTERS: &str = "eEinumkKMGTP";

/// The factor of a suffix.
#[derive(Clone, Copy)]
enum Scale {
    /// Ten to this power.
    Ten(i64),
    /// A whole factor.
    Units(i128),
}

/// Digits around a decimal point.
#[derive(Clone, Copy)]
struct Decimal<'a> {
    whole: &'a [u8],
    fraction: &'a [u8],
}

pub(super) fn amount(text: &str) -> Result<Amount, Error> {
    if text.is_empty() {
        return Err(Error::Malformed);
    }
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, rest) = digits(unsigned);
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
    let (notation, scale) = scale(suffix)?;
    let decimal = Decimal::new(whole, fraction);
    let size = match scale {
        Scale::Ten(power) => decimal.times_ten_to(power.saturating_add(9)),
        Scale::Units(units) => decimal.times(units.saturating_mul(UNIT)).min(BINARY_MAX),
    };
    // Less than one unit is written with a decimal suffix from here on.
    let notation = match notation {
        Notation::Binary if (1..UNIT).contains(&size) => Notation::Decimal,
        notation => notation,
    };
    Ok(Amount {
        billionths: if negative {
            size.saturating_neg()
        } else {
            size
        },
        notation,
    })
}

/// The digits that the text begins with, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

fn scale(suffix: &str) -> Result<(Notation, Scale), Error> {
    let place = |table: &[&str]| table.iter().position(|name| *name == suffix);
    if let Some(place) = place(&DECIMAL) {
        let power = (place as i64).saturating_mul(3).saturating_sub(9);
        return Ok((Notation::Decimal, Scale::Ten(power)));
    }
    if let Some(place) = place(&BINARY) {
        let units = 1_024_i128.saturating_pow(place as u32);
        return Ok((Notation::Binary, Scale::Units(units)));
    }
    if !is_suffix_like(suffix) {
        return Err(Error::Malformed);
    }
    let power = suffix.strip_prefix(['e', 'E']).ok_or(Error::Suffix)?;
    let power = power.parse().map_err(|_| Error::Suffix)?;
    Ok((Notation::Exponent, Scale::Ten(power)))
}

/// Letters, perhaps a sign, and digits: all that can stand after the number.
fn is_suffix_like(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|c| LETTERS.contains(c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    digits(rest).1.is_empty()
}

impl<'a> Decimal<'a> {
    /// Without the zeros that mean nothing.
    fn new(whole: &'a str, fraction: &'a str) -> Self {
        Self {
            whole: whole.trim_start_matches('0').as_bytes(),
            fraction: fraction.trim_end_matches('0').as_bytes(),
        }
    }

    /// The number times 10^`power`, rounded up, and at most [`MAX`].
    fn times_ten_to(self, power: i64) -> i128 {
        let all = || self.whole.iter().chain(self.fraction);
        let zeros = all().take_while(|byte| **byte == b'0').count();
        let digits = all().skip(zeros);
        let length = digits.clone().count();
        // How many of these digits stand before the point once it is moved.
        let places = as_i64(self.whole.len())
            .saturating_sub(as_i64(zeros))
            .saturating_add(power);
        match usize::try_from(places) {
            _ if length == 0 => 0,
            Err(_) | Ok(0) => 1,
            Ok(places) if places > 38 => MAX,
            Ok(places) => {
                let near = digits.clone().take(places);
                let padding = 10_i128.pow(places.saturating_sub(length) as u32);
                let whole = near.fold(0, |sum: i128, byte| push(sum, *byte));
                let more = digits.skip(places).any(|byte| *byte != b'0');
                let size = whole.saturating_mul(padding);
                size.saturating_add(i128::from(more)).min(MAX)
            }
        }
    }

    /// The number times `factor` of at most 2⁶⁰ units, rounded up.
    fn times(self, factor: i128) -> i128 {
        let whole = self.whole.iter().fold(0, |sum, byte| push(sum, *byte));
        // From the last digit: each division leaves what the digits so far come to, in billionths of a unit.
        let (fraction, rest) = self
            .fraction
            .iter()
            .rfold((0_i128, false), |(sum, rest), byte| {
                let sum = factor.saturating_mul(value(*byte)).saturating_add(sum);
                (sum / 10, rest || sum % 10 != 0)
            });
        whole
            .saturating_mul(factor)
            .saturating_add(fraction)
            .saturating_add(i128::from(rest))
    }
}

/// The number with one more digit.
fn push(sum: i128, digit: u8) -> i128 {
    sum.saturating_mul(10).saturating_add(value(digit))
}

fn value(digit: u8) -> i128 {
    i128::from(digit.saturating_sub(b'0'))
}

pub(super) fn as_i64(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
