//! The grammar of quantities: a sign, a decimal, and a suffix or an exponent. A missing part is zero, as upstream.

/// Decimal suffixes by powers of a thousand, from a billionth.
pub const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// Binary suffixes by powers of 1024, from one unit.
pub const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Letters of which suffixes are made.
const LETTERS: &str = "eEinumkKMGTP";

/// The text is not a quantity; in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It holds something that belongs neither to a number nor to a suffix.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Malformed,
    /// The letters after the number are not a suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The parts of a quantity as text.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// Whether it begins with a minus sign.
    pub negative: bool,
    /// Digits before the decimal point, perhaps none.
    pub whole: &'a str,
    /// Digits after the decimal point, perhaps none.
    pub fraction: &'a str,
    /// The factor of the number.
    pub scale: Scale,
}

/// The factor of a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Ten to this power, as one of [`DECIMAL`].
    Decimal(i64),
    /// 1024 to this power, as one of [`BINARY`].
    Binary(u32),
    /// Ten to this power, as an exponent.
    Exponent(i64),
}

/// Splits a quantity into its parts, in time linear in the text.
///
/// # Errors
/// When the text is not a quantity.
pub fn parse(text: &str) -> Result<Parts<'_>, Error> {
    if text.is_empty() {
        return Err(Error::Malformed);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, rest) = digits(unsigned);
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
    Ok(Parts {
        negative: text.starts_with('-'),
        whole,
        fraction,
        scale: scale(suffix)?,
    })
}

/// The digits that the text begins with, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

fn scale(suffix: &str) -> Result<Scale, Error> {
    let place = |table: &[&str]| table.iter().position(|name| *name == suffix);
    if let Some(place) = place(&DECIMAL) {
        return Ok(Scale::Decimal(place as i64 * 3 - 9));
    }
    if let Some(place) = place(&BINARY) {
        return Ok(Scale::Binary(place as u32));
    }
    if !is_suffix_like(suffix) {
        return Err(Error::Malformed);
    }
    let power = suffix.strip_prefix(['e', 'E']).ok_or(Error::Suffix)?;
    let power = power.parse().map_err(|_| Error::Suffix)?;
    Ok(Scale::Exponent(power))
}

/// Letters, perhaps a sign, and digits: all that can stand after the number.
fn is_suffix_like(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|c| LETTERS.contains(c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    digits(rest).1.is_empty()
}
