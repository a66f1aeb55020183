//! `format`: values in a text.

use std::iter::Peekable;
use std::str::Chars;

use super::super::meter::{Failure, Meter, scan};
use super::super::values::{List, Val};
use super::convert;

/// The digits after the point that a clause may ask for.
const MAX_PRECISION: usize = 100;
/// The depth of lists in lists that are printed.
const MAX_DEPTH: usize = 32;

/// Replaces the clauses of a text (`%s`, `%d`, `%.2f`, `%e`, `%b`, `%x`, `%X`, `%o`) by values.
pub(super) fn fill<'a>(
    text: &str,
    values: &List<'a>,
    meter: &mut Meter,
) -> Result<Val<'a>, Failure> {
    let mut letters = text.chars().peekable();
    let mut out = String::new();
    let mut next = 0;
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        if letters.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let precision = precision(&mut letters)?;
        let verb = letters.next().ok_or_else(|| {
            Failure::error("could not parse formatting clause: unexpected end of string")
        })?;
        let missing = || Failure::Error(format!("index {next} out of range"));
        let value = values.get(next).ok_or_else(missing)??;
        next += 1;
        let start = out.len();
        clause(verb, precision, &value, &mut out, meter)?;
        meter.spend(1 + scan((out.len() - start) as u64))?;
    }
    Ok(Val::from(out))
}

fn precision(letters: &mut Peekable<Chars<'_>>) -> Result<Option<usize>, Failure> {
    if letters.next_if_eq(&'.').is_none() {
        return Ok(None);
    }
    let mut digits = String::new();
    while let Some(digit) = letters.next_if(char::is_ascii_digit) {
        digits.push(digit);
    }
    let found = digits
        .parse()
        .ok()
        .filter(|digits| *digits <= MAX_PRECISION);
    let malformed = || Failure::error("error while parsing precision");
    found.map(Some).ok_or_else(malformed)
}

fn clause(
    verb: char,
    precision: Option<usize>,
    value: &Val<'_>,
    out: &mut String,
    meter: &mut Meter,
) -> Result<(), Failure> {
    let text = match (verb, value) {
        ('s', value) => return print(value, false, MAX_DEPTH, out, meter),
        ('d', Val::Int(_) | Val::Uint(_)) => convert::shown(value),
        ('f' | 'e', Val::Double(number)) => decimal(verb, *number, precision),
        ('f' | 'e', Val::Int(number)) => decimal(verb, *number as f64, precision),
        ('f' | 'e', Val::Uint(number)) => decimal(verb, *number as f64, precision),
        ('b', Val::Bool(flag)) => u8::from(*flag).to_string(),
        ('x', Val::String(text)) => hex(text.as_bytes(), meter)?,
        ('x', Val::Bytes(bytes)) => hex(bytes, meter)?,
        ('X', Val::String(text)) => hex(text.as_bytes(), meter)?.to_uppercase(),
        ('X', Val::Bytes(bytes)) => hex(bytes, meter)?.to_uppercase(),
        ('b' | 'o' | 'x' | 'X', Val::Int(number)) => {
            let sign = if *number < 0 { "-" } else { "" };
            format!("{sign}{}", radix(verb, number.unsigned_abs()))
        }
        ('b' | 'o' | 'x' | 'X', Val::Uint(number)) => radix(verb, *number),
        ('d' | 'f' | 'e' | 'b' | 'o' | 'x' | 'X', other) => {
            let detail = format!(
                "error during formatting: clause '%{verb}' cannot be used on {}",
                other.type_name()
            );
            return Err(Failure::Error(detail));
        }
        (other, _) => {
            let detail = format!(
                "could not parse formatting clause: unrecognized formatting clause \"{other}\""
            );
            return Err(Failure::Error(detail));
        }
    };
    out.push_str(&text);
    Ok(())
}

fn decimal(verb: char, number: f64, precision: Option<usize>) -> String {
    let digits = precision.unwrap_or(6);
    if !number.is_finite() {
        return match (number.is_nan(), number > 0.0) {
            (true, _) => "NaN".into(),
            (_, true) => "Infinity".into(),
            (_, false) => "-Infinity".into(),
        };
    }
    if verb == 'f' {
        return format!("{number:.digits$}");
    }
    let text = format!("{number:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{exponent:0>2}")
}

fn radix(verb: char, number: u64) -> String {
    match verb {
        'b' => format!("{number:b}"),
        'o' => format!("{number:o}"),
        'x' => format!("{number:x}"),
        _ => format!("{number:X}"),
    }
}

fn hex(bytes: &[u8], meter: &mut Meter) -> Result<String, Failure> {
    meter.spend(scan(bytes.len() as u64 * 2))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Prints a value; strings inside of lists and maps are quoted.
fn print(
    value: &Val<'_>,
    quoted: bool,
    depth: usize,
    out: &mut String,
    meter: &mut Meter,
) -> Result<(), Failure> {
    if depth == 0 {
        return Err(Failure::error(
            "error during formatting: value is nested too deeply",
        ));
    }
    meter.spend(1 + scan(value.size()))?;
    match value {
        Val::String(text) if quoted => out.push_str(&quote(text)),
        Val::String(text) => out.push_str(text),
        Val::Bytes(bytes) => out.push_str(&String::from_utf8_lossy(bytes)),
        Val::List(list) => {
            out.push('[');
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                print(&item?, true, depth - 1, out, meter)?;
            }
            out.push(']');
        }
        Val::Map(map) => {
            out.push('{');
            for (index, key) in map.keys().iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                print(key, true, depth - 1, out, meter)?;
                out.push_str(": ");
                let value = map.get(key)?.unwrap_or(Val::Null);
                print(&value, true, depth - 1, out, meter)?;
            }
            out.push('}');
        }
        other => match convert::scalar(other) {
            Some(text) => out.push_str(&text),
            None => {
                let name = other.type_name();
                let detail = format!(
                    "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given {name}"
                );
                return Err(Failure::Error(detail));
            }
        },
    }
    Ok(())
}

/// Returns a text in double quotes, with escapes.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
