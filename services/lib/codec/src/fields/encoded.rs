//! The fields in which two encoded objects differ, found without their JSON: most objects are created and updated, and
//! never applied.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};
use prost_reflect::Kind as Type;
use serde_json::Value;

use super::compare::{ADDED, Comparison, Difference, MODIFIED, REMOVED};
use super::element::PathElement;
use super::shape::Shape;
use crate::Kind;
use crate::rules::{self, Field, Message, Shapes};

/// The documents of two objects have to be compared: the bytes are not an encoding as prost writes it, two entries of a
/// list have the same key, or values whose encodings differ can have the same JSON.
pub(super) struct Unclear;

impl Comparison {
    /// Compares two encoded objects as [`Self::of`] compares their documents.
    ///
    /// # Errors
    /// If these have to be compared, as for all custom kinds.
    pub(super) fn of_encoded(kind: &Kind, old: &[u8], new: &[u8]) -> Result<Self, Unclear> {
        let message = rules::message(kind.message.full_name()).filter(|_| !kind.is_custom());
        let message = message.ok_or(Unclear)?;
        let mut difference = Difference::default();
        compare_messages(message, [Some(old), Some(new)], &mut difference)?;
        Ok(difference.into())
    }
}

/// The encodings of a value in the old object and in the new one; `None` where the JSON does not have it.
type Pair<'a> = [Option<&'a [u8]>; 2];

/// Applies a function to both.
fn both<'a, T>(
    pair: Pair<'a>,
    read: impl Fn(&'a [u8]) -> Result<T, Unclear>,
) -> Result<[Option<T>; 2], Unclear> {
    let [old, new] = pair.map(|value| value.map(&read).transpose());
    Ok([old?, new?])
}

fn compare_messages(
    message: &'static Message,
    pair: Pair<'_>,
    out: &mut Difference,
) -> Result<(), Unclear> {
    let [old, new] = both(pair, Records::read)?;
    for field in message.fields() {
        let pair = [written(field, old.as_ref())?, written(field, new.as_ref())?];
        if pair[0] != pair[1] {
            let name = Cow::Borrowed(field.descriptor.json_name());
            out.push(PathElement::Field(name), compare_field(field, pair)?);
        }
    }
    Ok(())
}

/// Returns the records of a field of an object; `None` if its JSON does not have the field.
fn written<'a>(field: &Field, object: Option<&Records<'a>>) -> Result<Option<&'a [u8]>, Unclear> {
    let Some(object) = object else {
        return Ok(None);
    };
    let records = object.of(field)?;
    Ok(match records {
        Some(records) if field.omitzero && payload(records)?.is_empty() => None,
        None if field.always || (field.value && !field.omitzero) => Some(&[]),
        records => records,
    })
}

/// Compares the records of a field, which differ.
fn compare_field(field: &'static Field, pair: Pair<'_>) -> Result<Difference, Unclear> {
    let Shapes { whole, element } = field.shapes();
    let mut difference = existence(pair);
    match whole {
        Shape::Map(_) => {
            for (key, pair) in changed_entries(pair, map_entry)? {
                let inner = compare_value(field, element, single(element, pair)?)?;
                difference.push(PathElement::field(key.to_owned()), inner);
            }
        }
        Shape::Keyed(_) | Shape::Set => {
            let read = |entry| Ok((path_element(field, whole, entry)?, entry));
            for (key, pair) in changed_entries(pair, read)? {
                difference.push(key, compare_value(field, element, pair)?);
            }
        }
        _ => return compare_value(field, whole, single(whole, pair)?),
    }
    Ok(difference)
}

/// Compares two values that are no list or map, or owned as a whole, and differ.
fn compare_value(
    field: &'static Field,
    shape: Shape<'static>,
    pair: Pair<'_>,
) -> Result<Difference, Unclear> {
    let mut difference = existence(pair);
    match (shape, pair) {
        (Shape::Struct(message), _) => compare_messages(message, pair, &mut difference)?,
        (_, [Some(_), Some(_)]) if !field.is_canonical() => return Err(Unclear),
        (_, [Some(_), Some(_)]) => difference.own[MODIFIED] = true,
        _ => {}
    }
    Ok(difference)
}

/// Returns the messages in records of a field that holds one; other records as they are.
fn single<'a>(shape: Shape<'_>, pair: Pair<'a>) -> Result<Pair<'a>, Unclear> {
    match shape {
        Shape::Struct(_) => both(pair, payload),
        _ => Ok(pair),
    }
}

/// Returns whether the value itself was added or removed.
fn existence(pair: Pair<'_>) -> Difference {
    let mut difference = Difference::default();
    difference.own[ADDED] = pair[0].is_none();
    difference.own[REMOVED] = pair[1].is_none();
    difference
}

/// Returns the entries of a list or map that differ, by their keys.
fn changed_entries<'a, K: Ord>(
    pair: Pair<'a>,
    read: impl Fn(&'a [u8]) -> Result<(K, &'a [u8]), Unclear>,
) -> Result<BTreeMap<K, Pair<'a>>, Unclear> {
    let mut entries = BTreeMap::<K, Pair<'a>>::new();
    for (side, records) in pair.into_iter().enumerate() {
        let mut rest = records.unwrap_or_default();
        while !rest.is_empty() {
            let (key, value) = read(next_payload(&mut rest)?)?;
            let known = &mut entries.entry(key).or_default()[side];
            if known.replace(value).is_some() {
                return Err(Unclear);
            }
        }
    }
    entries.retain(|_, [old, new]| old != new);
    Ok(entries)
}

/// Returns the key of an entry of a map, and the records of its value.
fn map_entry(entry: &[u8]) -> Result<(&str, &[u8]), Unclear> {
    let entry = Records::read(entry)?;
    let records = |number| entry.find(number).unwrap_or_default();
    Ok((text(records(1))?, records(2)))
}

/// Returns the path element of an entry of a list.
fn path_element(
    field: &'static Field,
    list: Shape<'static>,
    entry: &[u8],
) -> Result<PathElement, Unclear> {
    let Some(message) = field.message() else {
        let text = str::from_utf8(entry).map_err(|_| Unclear)?;
        return match field.element {
            Type::String => Ok(PathElement::Value(text.into())),
            _ => Err(Unclear),
        };
    };
    let entry = Records::read(entry)?;
    let mut keys = Vec::with_capacity(field.key.len());
    for key in &field.key {
        let of = message.field(key).ok_or(Unclear)?;
        if let Some(records) = written(of, Some(&entry))? {
            keys.push((Cow::Borrowed(key.as_str()), scalar(of, records)?));
        }
    }
    list.with_keys(keys).map_err(|_| Unclear)
}

/// Returns the value of a key.
fn scalar(field: &Field, records: &[u8]) -> Result<Value, Unclear> {
    match field.element {
        Type::String => Ok(text(records)?.into()),
        Type::Int32 | Type::Int64 => Ok(number(records)?.into()),
        _ => Err(Unclear),
    }
}

/// Returns the value of a record of a number; 0 if there is no record.
fn number(mut records: &[u8]) -> Result<i64, Unclear> {
    if records.is_empty() {
        return Ok(0);
    }
    let (_, WireType::Varint) = decode_key(&mut records)? else {
        return Err(Unclear);
    };
    Ok(decode_varint(&mut records)?.cast_signed())
}

/// Returns the value of a record of a string; an empty one if there is no record.
fn text(records: &[u8]) -> Result<&str, Unclear> {
    str::from_utf8(payload(records)?).map_err(|_| Unclear)
}

/// Returns what a record of a string or message holds; nothing if there is no record.
fn payload(mut records: &[u8]) -> Result<&[u8], Unclear> {
    if records.is_empty() {
        return Ok(&[]);
    }
    let payload = next_payload(&mut records)?;
    match records {
        [] => Ok(payload),
        _ => Err(Unclear),
    }
}

/// Reads a record of a string or message. Returns what it holds.
fn next_payload<'a>(records: &mut &'a [u8]) -> Result<&'a [u8], Unclear> {
    let (_, WireType::LengthDelimited) = decode_key(records)? else {
        return Err(Unclear);
    };
    let length = usize::try_from(decode_varint(records)?).map_err(|_| Unclear)?;
    let (payload, rest) = records.split_at_checked(length).ok_or(Unclear)?;
    *records = rest;
    Ok(payload)
}

/// An encoded message, and the ranges of its fields by number. The records of a list or map follow each other.
struct Records<'a> {
    raw: &'a [u8],
    ranges: Vec<(u32, Range<usize>)>,
}

impl<'a> Records<'a> {
    fn read(raw: &'a [u8]) -> Result<Self, Unclear> {
        let mut ranges = Vec::<(u32, Range<usize>)>::new();
        let mut rest = raw;
        while !rest.is_empty() {
            let start = raw.len() - rest.len();
            let (number, wire) = decode_key(&mut rest)?;
            skip_field(wire, number, &mut rest, DecodeContext::default())?;
            let end = raw.len() - rest.len();
            match ranges.last_mut() {
                Some((last, range)) if *last == number => range.end = end,
                _ => ranges.push((number, start..end)),
            }
        }
        ranges.sort_by_key(|(number, _)| *number);
        match ranges.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            true => Err(Unclear),
            false => Ok(Self { raw, ranges }),
        }
    }

    fn find(&self, number: u32) -> Option<&'a [u8]> {
        let found = self
            .ranges
            .binary_search_by_key(&number, |(number, _)| *number);
        found.ok().map(|at| &self.raw[self.ranges[at].1.clone()])
    }

    /// Returns the records of a field, which may be one of an inlined message.
    fn of(&self, field: &Field) -> Result<Option<&'a [u8]>, Unclear> {
        let [first, inner @ ..] = &*field.path else {
            return Err(Unclear);
        };
        let mut found = self.find(*first);
        for number in inner {
            let message = Self::read(payload(found.unwrap_or_default())?)?;
            found = message.find(*number);
        }
        Ok(found)
    }
}

impl From<prost::DecodeError> for Unclear {
    fn from(_: prost::DecodeError) -> Self {
        Self
    }
}
