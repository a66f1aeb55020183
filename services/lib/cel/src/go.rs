//! Values as Go prints them, which upstream's messages contain.

use serde_json::{Number, Value};

pub use super::time::go_duration as duration;

/// A number as upstream decodes it from JSON: an integer of 64 bits, or a double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Num {
    /// An integer.
    Int(i64),
    /// A double.
    Float(f64),
}

impl Num {
    /// Returns the number of JSON.
    pub fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(int) => Num::Int(int),
            None => Num::Float(number.as_f64().unwrap_or(f64::INFINITY)),
        }
    }

    /// Returns the number as a double.
    pub fn as_f64(self) -> f64 {
        match self {
            Num::Int(int) => int as f64,
            Num::Float(float) => float,
        }
    }
}

/// Returns a value as an error shows it: `%q` of a string, `%v` of a number, and else JSON.
pub fn show(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) => match Num::of(number) {
            Num::Int(int) => int.to_string(),
            Num::Float(float) => self::float(float),
        },
        other => json(other),
    }
}

/// Returns a value as JSON with Go's escapes.
pub fn json(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    text.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Returns a value as Go prints it by itself: a string as it is, `%v` of a number, and else JSON.
pub fn print(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => show(other),
    }
}

/// Returns `%v` of a double: an exponent below 1e-4 and from 1e6 on.
pub fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.into();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e6).contains(&size) {
        return exponential(value);
    }
    value.to_string()
}

/// Go writes the sign of an exponent, and two digits at least.
fn exponential(value: f64) -> String {
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

/// Returns `%q` of a string.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        push_quoted(letter, &mut out);
    }
    out.push('"');
    out
}

fn push_quoted(letter: char, out: &mut String) {
    match letter {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        ' ' => out.push(' '),
        other if (other as u32) < 0x80 && other.is_control() => {
            out.push_str(&format!("\\x{:02x}", other as u32));
        }
        other if is_printable(other) => out.push(other),
        other if (other as u32) < 0x10000 => out.push_str(&format!("\\u{:04x}", other as u32)),
        other => out.push_str(&format!("\\U{:08x}", other as u32)),
    }
}

/// Near enough to Go's table: neither control characters nor spaces other than the ASCII one, nor private use.
fn is_printable(letter: char) -> bool {
    let private = ('\u{e000}'..='\u{f8ff}').contains(&letter) || letter as u32 >= 0xf0000;
    !letter.is_control() && !letter.is_whitespace() && !private && letter != '\u{feff}'
}

/// Whether a double is an integer by the rule of upstream's validator, with its tolerance for rounding.
pub fn is_integer(value: f64) -> bool {
    const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
    const EPSILON: f64 = 1e-9;
    if !value.is_finite() || value.abs() > MAX_SAFE {
        return false;
    }
    let whole = value.trunc();
    if value == whole {
        return true;
    }
    // Upstream truncates to an unsigned integer, so that only positive numbers are tolerated.
    let difference = (value - whole).abs();
    value > 0.0 && whole != 0.0 && difference / (value.abs() + whole.abs()) < EPSILON
}

#[cfg(test)]
mod tests {
    use super::{float, is_integer, quote};

    #[test]
    fn doubles_are_printed_as_go_does() {
        let cases = [
            (1.0, "1"),
            (1.5, "1.5"),
            (999_999.5, "999999.5"),
            (1e6, "1e+06"),
            (123_456_789.0, "1.23456789e+08"),
            (1e21, "1e+21"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (0.0, "0"),
        ];
        for (value, text) in cases {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn strings_are_quoted_as_go_does() {
        assert_eq!(
            quote("a\"\\\n\u{1}é\u{a0}"),
            "\"a\\\"\\\\\\n\\x01é\\u00a0\""
        );
        assert_eq!(quote("\u{f0000}"), "\"\\U000f0000\"");
    }

    #[test]
    fn doubles_near_an_integer_are_integers() {
        for (value, expected) in [
            (3.0, true),
            (3.5, false),
            (2.999_999_999_99, false),
            (1e300, false),
        ] {
            assert_eq!(is_integer(value), expected, "{value}");
        }
        assert!(is_integer(1.0 / 0.01 * 0.07));
    }
}
