//! The managers that an update concerns. Most updates change one of metadata, spec and status, so that the managers
//! that own nothing in it need not be decoded.

use std::collections::BTreeSet;

use serde_json::Value;
use setpoint_proto::meta::ManagedFieldsEntry;

use super::compare::Comparison;
use super::managers::{Edit, MAX_UPDATERS};
use super::set::{FieldSet, Node};

/// The number of parts that are searched for in the fields of each manager. Objects of custom kinds can have thousands,
/// and decoding takes less time then.
const MAX_PARTS: usize = 16;

/// The managers whose fields an update can change.
pub(super) struct Concerned<'a> {
    manager: &'a str,
    version: String,
    /// The keys in `fieldsV1` of the parts that differ, in quotes; `None` if all managers are concerned.
    keys: Option<BTreeSet<String>>,
}

impl<'a> Concerned<'a> {
    /// Returns the managers that an update with these changes concerns.
    pub(super) fn by(
        edit: &'a Edit<'_>,
        live: &[ManagedFieldsEntry],
        changes: &Comparison,
    ) -> Self {
        // If there are too many, the oldest are merged.
        let keys = (live.len() < MAX_UPDATERS).then(|| keys_of(changes));
        let keys = keys.filter(|keys| keys.len() <= MAX_PARTS);
        Self {
            manager: edit.recorded_name(),
            version: edit.kind.api_version(),
            keys,
        }
    }

    /// Returns whether the manager of an entry is one of them. It may be one that owns nothing in the parts that
    /// differ.
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

/// Returns the keys in `fieldsV1` of the parts with changes, in quotes.
fn keys_of(changes: &Comparison) -> BTreeSet<String> {
    let sets = [&changes.added, &changes.modified, &changes.removed];
    let nodes = sets.into_iter().flat_map(FieldSet::nodes);
    let text = |node: &Node| {
        let mut text = String::new();
        node.element.write(&mut text);
        Value::from(text).to_string()
    };
    nodes.map(text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use setpoint_proto::meta::{FieldsV1, Time};

    use super::*;
    use crate::fields::shape::Shape;
    use crate::kinds;

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
        let changes = |new: &Value| Comparison::of(Shape::Untyped, &was, new).unwrap();
        let few = vec![ManagedFieldsEntry::default(); MAX_UPDATERS - 1];
        let concerned = Concerned::by(&edit, &few, &changes(&is));
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
        let concerned = Concerned::by(&edit, &few, &changes(&wide));
        assert!(concerned.includes(&entry("other", "v1", r#"{"f:d":{}}"#)));
        let concerned = Concerned::by(&edit, &few, &changes(&json!({})));
        assert!(!concerned.includes(&entry("other", "v1", r#"{"f:d":{}}"#)));
        let many = vec![ManagedFieldsEntry::default(); MAX_UPDATERS];
        let concerned = Concerned::by(&edit, &many, &changes(&is));
        assert!(concerned.includes(&entry("other", "v1", r#"{"f:a":{}}"#)));
    }
}
