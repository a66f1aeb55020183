//! The parts of an object that an update changes. Most updates change one of metadata, spec and status, so that neither the others
//! nor the managers that own nothing in it need be decoded.

use std::collections::BTreeMap;
use std::ops::Range;

use prost::encoding::{DecodeContext, decode_key, skip_field};
use serde_json::Value;
use setpoint_proto::meta::ManagedFieldsEntry;

use super::managers::{Edit, MAX_UPDATERS};

/// Returns two encoded messages without the fields whose encodings are the same in both.
///
/// # Errors
/// If the bytes are not the encoding of a message.
pub(super) fn changed(old: &[u8], new: &[u8]) -> Result<(Vec<u8>, Vec<u8>), prost::DecodeError> {
    let (was, is) = (ranges(old)?, ranges(new)?);
    let same = |number: &u32| match (was.get(number), is.get(number)) {
        (Some(was), Some(is)) => old[was.clone()] == new[is.clone()],
        _ => false,
    };
    let others = |raw: &[u8], all: &BTreeMap<u32, Range<usize>>| {
        let changed = all.iter().filter(|(number, _)| !same(number));
        changed
            .flat_map(|(_, range)| &raw[range.clone()])
            .copied()
            .collect()
    };
    Ok((others(old, &was), others(new, &is)))
}

/// Returns the ranges of the fields of an encoded message, by number. The entries of a list or map follow each other.
fn ranges(raw: &[u8]) -> Result<BTreeMap<u32, Range<usize>>, prost::DecodeError> {
    let mut ranges = BTreeMap::<u32, Range<usize>>::new();
    let mut rest = raw;
    while !rest.is_empty() {
        let start = raw.len() - rest.len();
        let (number, wire) = decode_key(&mut rest)?;
        skip_field(wire, number, &mut rest, DecodeContext::default())?;
        let end = raw.len() - rest.len();
        ranges.entry(number).or_insert(start..end).end = end;
    }
    Ok(ranges)
}

/// The managers whose fields an update can change.
pub(super) struct Concerned<'a> {
    manager: &'a str,
    version: String,
    /// The keys in `fieldsV1` of the parts that differ, in quotes; `None` if all managers are concerned.
    keys: Option<Vec<String>>,
}

impl<'a> Concerned<'a> {
    /// Returns the managers that an update between two documents concerns.
    pub(super) fn by(
        edit: &'a Edit<'_>,
        live: &[ManagedFieldsEntry],
        was: &Value,
        is: &Value,
    ) -> Self {
        // If there are too many, the oldest are merged.
        let keys = (live.len() < MAX_UPDATERS).then(|| differing(was, is));
        Self {
            manager: edit.recorded_name(),
            version: edit.kind.api_version(),
            keys,
        }
    }

    /// Returns whether the manager of an entry is one of them. It may be one that owns nothing in the parts that differ.
    pub(super) fn includes(&self, entry: &ManagedFieldsEntry) -> bool {
        let Some(keys) = &self.keys else { return true };
        let fields = entry
            .fields_v1
            .as_ref()
            .map_or(&[][..], |fields| &fields.raw);
        let Ok(fields) = str::from_utf8(fields) else {
            return true;
        };
        entry.manager == self.manager
            || entry.api_version != self.version
            // A key can be written with escapes.
            || fields.contains('\\')
            || keys.iter().any(|key| fields.contains(key.as_str()))
    }
}

/// Returns the keys in `fieldsV1` of the fields in which two documents differ.
fn differing(was: &Value, is: &Value) -> Vec<String> {
    let names = |document: &Value| -> Vec<String> {
        let object = document.as_object().into_iter().flatten();
        object.map(|(name, _)| name.clone()).collect()
    };
    let mut all = names(was);
    all.extend(names(is));
    all.retain(|name| was.get(name) != is.get(name));
    all.into_iter()
        .map(|name| Value::from(format!("f:{name}")).to_string())
        .collect()
}
