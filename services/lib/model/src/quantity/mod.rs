//! Amounts of a resource, as Kubernetes writes them: `100m`, `1.5`, `128Mi`, `1e3`.
#![warn(clippy::arithmetic_side_effects)]

mod decimal;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::ops::{Add, Sub};

pub use setpoint_proto::quantity::Error;
use setpoint_proto::quantity::{self as grammar, BINARY, DECIMAL, Parts, Scale};

use decimal::Decimal;

/// Amounts are kept in billionths: nothing smaller can be written.
const UNIT: i128 = 1_000_000_000;
/// 10²⁹ units. Larger amounts are taken to be this; upstream has no such bound, but keeps every digit.
const MAX: i128 = 10_i128.pow(38);
/// Amounts with a binary suffix end here, as upstream's do.
const BINARY_MAX: i128 = (i64::MAX as i128).saturating_mul(UNIT);

/// The format of an amount, which is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    Decimal,
    Binary,
    Exponent,
}

/// An exact amount of at most 10²⁹ units. Equal amounts are equal, however they were written. Sums end at the bounds.
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

    /// Reads an amount, in time linear in the text. What is finer than a billionth is rounded away from zero, and an
    /// amount with a binary suffix is at most 2⁶³-1.
    ///
    /// # Errors
    /// When the text is no amount.
    pub fn parse(text: &str) -> Result<Self, Error> {
        grammar::parse(text).map(Self::from)
    }

    /// An amount of whole units.
    pub const fn from_value(value: i64) -> Self {
        Self {
            billionths: (value as i128).saturating_mul(UNIT),
            notation: Notation::Decimal,
        }
    }

    /// An amount of thousandths.
    pub const fn from_millis(millis: i64) -> Self {
        Self {
            billionths: (millis as i128).saturating_mul(UNIT / 1_000),
            notation: Notation::Decimal,
        }
    }

    /// The same amount, written with a binary suffix where that is exact.
    #[must_use]
    pub const fn in_binary(self) -> Self {
        Self {
            notation: Notation::Binary,
            ..self
        }
    }

    /// Whether it was written with a binary suffix.
    pub const fn is_binary(self) -> bool {
        matches!(self.notation, Notation::Binary)
    }

    /// In thousandths, rounded away from zero.
    pub fn millis(self) -> i64 {
        self.in_parts_of(UNIT / 1_000)
    }

    /// In whole units, rounded away from zero.
    pub fn value(self) -> i64 {
        self.in_parts_of(UNIT)
    }

    /// In whole units, as the nearest double.
    pub fn as_f64(self) -> f64 {
        self.billionths as f64 / UNIT as f64
    }

    /// The one way to write this amount: the largest suffix that leaves a whole number.
    pub fn canonical(self) -> String {
        let size = self.billionths.abs();
        let sign = if self.billionths.is_negative() {
            "-"
        } else {
            ""
        };
        if size == 0 {
            return "0".to_owned();
        }
        // A fraction, and what is below 1Ki, has no binary form that would not lose something.
        let is_binary = size >= 1_024_i128.saturating_mul(UNIT) && size % UNIT == 0;
        match self.notation {
            Notation::Binary if is_binary => {
                let (number, power) = reduce(size / UNIT, 1_024, BINARY.len());
                format!("{sign}{number}{}", BINARY[power])
            }
            Notation::Decimal | Notation::Binary => {
                let (number, power) = reduce(size, 1_000, DECIMAL.len());
                format!("{sign}{number}{}", DECIMAL[power])
            }
            Notation::Exponent => {
                let (number, power) = reduce(size, 1_000, usize::MAX);
                format!("{sign}{number}{}", exponent(power))
            }
        }
    }

    fn in_parts_of(self, part: i128) -> i64 {
        let whole = self.billionths.div_euclid(part);
        let rest = self.billionths.rem_euclid(part);
        // Euclidean division has rounded a negative amount away from zero already.
        let up = rest != 0 && self.billionths.is_positive();
        let parts = whole.saturating_add(i128::from(up));
        let bound = if parts.is_negative() {
            i64::MIN
        } else {
            i64::MAX
        };
        i64::try_from(parts).unwrap_or(bound)
    }

    /// A sum or difference of two amounts, written as the first unless that is nothing.
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

/// Divides by `base` as often as no remainder is left, but less than `powers` times; returns how often it did.
fn reduce(mut size: i128, base: i128, powers: usize) -> (i128, usize) {
    let mut power = 0_usize;
    while power.saturating_add(1) < powers && size.checked_rem(base) == Some(0) {
        size = size.div_euclid(base);
        power = power.saturating_add(1);
    }
    (size, power)
}

/// The exponent for a power of a thousand billionths.
fn exponent(power: usize) -> String {
    match decimal::as_i64(power).saturating_mul(3).saturating_sub(9) {
        0 => String::new(),
        tens => format!("e{tens}"),
    }
}

impl From<Parts<'_>> for Amount {
    fn from(parts: Parts<'_>) -> Self {
        let decimal = Decimal::new(parts.whole, parts.fraction);
        let tens = |power: i64| decimal.times_ten_to(power.saturating_add(9));
        let (notation, size) = match parts.scale {
            Scale::Decimal(power) => (Notation::Decimal, tens(power)),
            Scale::Exponent(power) => (Notation::Exponent, tens(power)),
            Scale::Binary(power) => {
                let factor = 1_024_i128.saturating_pow(power).saturating_mul(UNIT);
                let size = decimal.times(factor).min(BINARY_MAX);
                // Less than one unit is written with a decimal suffix from here on.
                let notation = match size {
                    1..UNIT => Notation::Decimal,
                    _ => Notation::Binary,
                };
                (notation, size)
            }
        };
        let billionths = match parts.negative {
            true => size.saturating_neg(),
            false => size,
        };
        Self {
            billionths,
            notation,
        }
    }
}

impl Add for Amount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.with(other, self.billionths.saturating_add(other.billionths))
    }
}

impl Sub for Amount {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.with(other, self.billionths.saturating_sub(other.billionths))
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
