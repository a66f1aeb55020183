//! Functions of strings. Positions count characters.

use super::super::meter::{Failure, Meter, scan};
use super::super::values::Val;
use super::convert::count;
use super::{Cost, Entry, template};

pub(super) const ENTRIES: &[Entry] = &[
    (
        &["string::contains(string) bool"],
        Cost::Search,
        |args, _| strings(args, |text, part| Val::Bool(text.contains(part))),
    ),
    (
        &["string::startsWith(string) bool"],
        Cost::Affix,
        |args, _| strings(args, |text, part| Val::Bool(text.starts_with(part))),
    ),
    (
        &["string::endsWith(string) bool"],
        Cost::Affix,
        |args, _| strings(args, |text, part| Val::Bool(text.ends_with(part))),
    ),
    (&["string::charAt(int) string"], Cost::Unit, char_at),
    (
        &[
            "string::indexOf(string) int",
            "string::indexOf(string, int) int",
        ],
        Cost::Find,
        index_of,
    ),
    (
        &[
            "string::lastIndexOf(string) int",
            "string::lastIndexOf(string, int) int",
        ],
        Cost::Find,
        last_index_of,
    ),
    (&["string::lowerAscii() string"], Cost::First, |args, _| {
        map(args, |text| text.to_ascii_lowercase())
    }),
    (&["string::upperAscii() string"], Cost::First, |args, _| {
        map(args, |text| text.to_ascii_uppercase())
    }),
    (&["string::trim() string"], Cost::First, |args, _| {
        map(args, |text| text.trim().to_owned())
    }),
    (
        &[
            "string::replace(string, string) string",
            "string::replace(string, string, int) string",
        ],
        Cost::Copy,
        replace,
    ),
    (
        &[
            "string::split(string) list(string)",
            "string::split(string, int) list(string)",
        ],
        Cost::Copy,
        split,
    ),
    (
        &[
            "string::substring(int) string",
            "string::substring(int, int) string",
        ],
        Cost::First,
        substring,
    ),
    (
        &[
            "list(string)::join() string",
            "list(string)::join(string) string",
        ],
        Cost::Join,
        join,
    ),
    (
        &["string::format(list(dyn)) string"],
        Cost::First,
        |args, meter| match args {
            [Val::String(text), Val::List(values)] => template::fill(text, values, meter),
            _ => Err(Failure::NoOverload),
        },
    ),
    (&["strings.quote(string) string"], Cost::First, |args, _| {
        map(args, template::quote)
    }),
];

fn strings<'a>(
    args: &[Val<'a>],
    then: impl FnOnce(&str, &str) -> Val<'a>,
) -> Result<Val<'a>, Failure> {
    match args {
        [Val::String(text), Val::String(part)] => Ok(then(text, part)),
        _ => Err(Failure::NoOverload),
    }
}

fn map<'a>(args: &[Val<'a>], then: impl FnOnce(&str) -> String) -> Result<Val<'a>, Failure> {
    match args {
        [Val::String(text)] => Ok(Val::from(then(text))),
        _ => Err(Failure::NoOverload),
    }
}

fn out_of_range(index: i64) -> Failure {
    Failure::Error(format!("index out of range: {index}"))
}

/// Returns where a character begins, in bytes. The end of the text is a position, too.
fn offset(text: &str, position: i64) -> Result<usize, Failure> {
    let wanted = usize::try_from(position).map_err(|_| out_of_range(position))?;
    let mut offsets = text.char_indices().map(|(offset, _)| offset);
    let ends = std::iter::once(text.len());
    offsets
        .by_ref()
        .chain(ends)
        .nth(wanted)
        .ok_or_else(|| out_of_range(position))
}

fn char_at<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    let [Val::String(text), Val::Int(position)] = args else {
        return Err(Failure::NoOverload);
    };
    count(text, meter)?;
    let offset = offset(text, *position)?;
    let letter = text[offset..].chars().next();
    Ok(Val::from(letter.map(String::from).unwrap_or_default()))
}

fn characters(text: &str) -> i64 {
    text.chars().count() as i64
}

fn index_of<'a>(args: &[Val<'a>], _: &mut Meter) -> Result<Val<'a>, Failure> {
    let (text, part, start) = match args {
        [Val::String(text), Val::String(part)] => (text, part, 0),
        [Val::String(text), Val::String(part), Val::Int(start)] => (text, part, *start),
        _ => return Err(Failure::NoOverload),
    };
    let from = offset(text, start)?;
    let found = text[from..].find(&**part).map(|at| from + at);
    Ok(Val::Int(found.map_or(-1, |at| characters(&text[..at]))))
}

fn last_index_of<'a>(args: &[Val<'a>], _: &mut Meter) -> Result<Val<'a>, Failure> {
    let (text, part, end) = match args {
        [Val::String(text), Val::String(part)] => (text, part, text.len()),
        [Val::String(text), Val::String(part), Val::Int(last)] => {
            // The part may begin at the last position.
            let end = offset(text, *last)?.saturating_add(part.len());
            (text, part, end.min(text.len()))
        }
        _ => return Err(Failure::NoOverload),
    };
    let found = match text.get(..end) {
        Some(head) => head.rfind(&**part),
        // The end is inside of a character: the part cannot end there.
        None => text
            .match_indices(&**part)
            .map(|(at, _)| at)
            .filter(|at| at + part.len() <= end)
            .last(),
    };
    Ok(Val::Int(found.map_or(-1, |at| characters(&text[..at]))))
}

fn replace<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    let (source, from, to, limit) = match args {
        [Val::String(source), Val::String(from), Val::String(to)] => (source, from, to, -1),
        [
            Val::String(source),
            Val::String(from),
            Val::String(to),
            Val::Int(limit),
        ] => (source, from, to, *limit),
        _ => return Err(Failure::NoOverload),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let matches = source.matches(&**from).take(limit).count();
    // A result that is no longer than the text is paid for already.
    let growth = matches.saturating_mul(to.len().saturating_sub(from.len()));
    meter.spend(scan(growth as u64))?;
    Ok(Val::from(source.replacen(&**from, to, limit)))
}

fn split<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    let (text, separator, limit) = match args {
        [Val::String(text), Val::String(separator)] => (text, separator, -1),
        [Val::String(text), Val::String(separator), Val::Int(limit)] => (text, separator, *limit),
        _ => return Err(Failure::NoOverload),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let parts: Vec<&str> = match (limit, separator.is_empty()) {
        (0, _) => Vec::new(),
        (limit, true) => letters(text, limit),
        (limit, false) => text.splitn(limit, &**separator).collect(),
    };
    // A string of its own has an overhead, which is more than the cost of the call if the strings are short.
    let paid = Cost::Copy.of(args);
    meter.spend((parts.len() as u64).saturating_sub(paid))?;
    Ok(Val::from(
        parts.into_iter().map(Val::from).collect::<Vec<_>>(),
    ))
}

/// Returns the characters, and the rest as one part if there are more than the limit.
fn letters(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if parts.len() + 1 == limit {
            parts.push(rest);
            break;
        }
        let (part, tail) = rest.split_at(letter.len_utf8());
        parts.push(part);
        rest = tail;
    }
    parts
}

fn substring<'a>(args: &[Val<'a>], _: &mut Meter) -> Result<Val<'a>, Failure> {
    let (text, start, end) = match args {
        [Val::String(text), Val::Int(start)] => (text, *start, None),
        [Val::String(text), Val::Int(start), Val::Int(end)] => (text, *start, Some(*end)),
        _ => return Err(Failure::NoOverload),
    };
    let from = offset(text, start)?;
    let to = match end {
        Some(end) => offset(text, end)?,
        None => text.len(),
    };
    match (text.get(from..to), end) {
        (Some(part), _) => Ok(Val::from(part)),
        (None, end) => {
            let end = end.unwrap_or_default();
            let detail = format!("invalid substring range. start: {start}, end: {end}");
            Err(Failure::Error(detail))
        }
    }
}

fn join<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, Failure> {
    let (list, separator) = match args {
        [Val::List(list)] => (list, ""),
        [Val::List(list), Val::String(separator)] => (list, &**separator),
        _ => return Err(Failure::NoOverload),
    };
    let mut items = Vec::with_capacity(list.len());
    let separators = list.len().saturating_sub(1);
    let mut length = separators.saturating_mul(separator.len());
    for item in list.iter() {
        let Val::String(item) = item? else {
            return Err(Failure::NoOverload);
        };
        length = length.saturating_add(item.len());
        items.push(item);
    }
    // The result is written and read; items without characters are visited, too.
    meter.spend(scan(length.saturating_mul(2).max(items.len()) as u64))?;
    let items: Vec<&str> = items.iter().map(|item| &**item).collect();
    Ok(Val::from(items.join(separator)))
}
