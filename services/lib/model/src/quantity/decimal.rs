//! A decimal of any length, scaled to an exact number of billionths.

use super::MAX;

/// Digits around a decimal point.
#[derive(Clone, Copy)]
pub(super) struct Decimal<'a> {
    whole: &'a [u8],
    fraction: &'a [u8],
}

impl<'a> Decimal<'a> {
    /// Without the zeros that mean nothing.
    pub(super) fn new(whole: &'a str, fraction: &'a str) -> Self {
        Self {
            whole: whole.trim_start_matches('0').as_bytes(),
            fraction: fraction.trim_end_matches('0').as_bytes(),
        }
    }

    /// The number times 10^`power`, rounded up, and at most [`MAX`].
    pub(super) fn times_ten_to(self, power: i64) -> i128 {
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
    pub(super) fn times(self, factor: i128) -> i128 {
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
