//! The parts of an object that an update changes. Most updates change one of metadata, spec and status, so that neither the others
//! nor the managers that own nothing in it need be decoded.

use std::collections::BTreeMap;
use std::ops::Range;

use prost::encoding::{DecodeContext, decode_key, skip_field};
use serde_json::Value;
use setpoint_proto::meta::ManagedFieldsEntry;

use super::managers::{Edit, MAX_UPDATERS};

/// The number of parts that are searched for in the fields of each manager. Objects of custom kinds can have thousands, and
/// decoding takes less time then.
const MAX_PARTS: usize = 16;

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
        let keys = keys.filter(|keys| keys.len() <= MAX_PARTS);
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

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use serde_json::json;
    use setpoint_proto::core::ConfigMap;
    use setpoint_proto::meta::{FieldsV1, Time};

    use super::*;
    use crate::fields::FieldSet;
    use crate::kinds;

    fn config_map(name: &str, data: &[(&str, &str)]) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.name = name.to_owned();
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        map.data = data.iter().map(own).collect();
        map
    }

    #[test]
    fn a_part_with_several_entries_is_kept_as_a_whole_if_any_differs() {
        let old = config_map("web", &[("a", "1"), ("b", "1")]);
        let new = config_map("web", &[("a", "1"), ("b", "2")]);
        let (was, is) = changed(&old.encode_to_vec(), &new.encode_to_vec()).unwrap();
        let (was, is) = (ConfigMap::decode(&*was), ConfigMap::decode(&*is));
        assert_eq!(was.unwrap(), config_map("", &[("a", "1"), ("b", "1")]));
        assert_eq!(is.unwrap(), config_map("", &[("a", "1"), ("b", "2")]));
    }

    #[test]
    fn managers_that_own_nothing_in_the_parts_that_differ_are_not_concerned() {
        let reset = FieldSet::default();
        let edit = Edit {
            kind: kinds().by_resource("configmaps").unwrap(),
            manager: "me",
            subresource: "",
            now: Time::default(),
            reset: &reset,
        };
        let entry = |manager: &str, version: &str, fields: &'static str| ManagedFieldsEntry {
            manager: manager.to_owned(),
            api_version: version.to_owned(),
            fields_v1: Some(FieldsV1 { raw: fields.into() }),
            ..ManagedFieldsEntry::default()
        };
        // One that was added, and one that was removed.
        let (was, is) = (json!({"a": 1, "b": 1}), json!({"a": 1, "c": 1}));
        let few = vec![ManagedFieldsEntry::default(); MAX_UPDATERS - 1];
        let concerned = Concerned::by(&edit, &few, &was, &is);
        for (entry, expected) in [
            (entry("other", "v1", r#"{"f:a":{}}"#), false),
            (entry("other", "v1", r#"{"f:b":{}}"#), true),
            (entry("other", "v1", r#"{"f:c":{}}"#), true),
            (entry("other", "v1", r#"{"f:\u0062":{}}"#), true),
            (entry("other", "v2", r#"{"f:a":{}}"#), true),
            (entry("me", "v1", r#"{"f:a":{}}"#), true),
        ] {
            assert_eq!(concerned.includes(&entry), expected, "{entry:?}");
        }
        let wide: Value = (0..=MAX_PARTS)
            .map(|at| (at.to_string(), Value::from(at)))
            .collect();
        let concerned = Concerned::by(&edit, &few, &was, &wide);
        assert!(concerned.includes(&entry("other", "v1", r#"{"f:d":{}}"#)));
        let concerned = Concerned::by(&edit, &few, &was, &json!({}));
        assert!(!concerned.includes(&entry("other", "v1", r#"{"f:d":{}}"#)));
        let many = vec![ManagedFieldsEntry::default(); MAX_UPDATERS];
        let concerned = Concerned::by(&edit, &many, &was, &is);
        assert!(concerned.includes(&entry("other", "v1", r#"{"f:a":{}}"#)));
    }
}
