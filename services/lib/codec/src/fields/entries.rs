//! The managed fields of an object: the entries of its metadata.

use std::collections::BTreeMap;

use setpoint_proto::meta::{FieldsV1, ManagedFieldsEntry};

use super::managers::{ManagerId, Managers, Operation, Owned, seconds};
use super::set::FieldSet;

const FIELDS_V1: &str = "FieldsV1";

impl Managers {
    /// Reads the managed fields of an object.
    ///
    /// # Errors
    /// If an entry is malformed.
    pub fn decode(entries: &[ManagedFieldsEntry]) -> Result<Self, String> {
        let mut all = BTreeMap::new();
        for (at, entry) in entries.iter().enumerate() {
            let operation = match entry.operation.as_str() {
                "Apply" => Operation::Apply,
                "Update" => Operation::Update,
                _ => return Err("operation must be `Apply` or `Update`".into()),
            };
            if entry.api_version.is_empty() {
                return Err("apiVersion must not be empty".into());
            }
            match entry.fields_type.as_str() {
                FIELDS_V1 => {}
                "" => return Err(format!("missing fieldsType in managed fields entry {at}")),
                other => {
                    return Err(format!(
                        "invalid fieldsType {other:?} in managed fields entry {at}"
                    ));
                }
            }
            let fields = entry.fields_v1.as_ref().map(|fields| fields.raw.as_ref());
            let id = ManagerId {
                manager: entry.manager.clone(),
                operation,
                api_version: match operation {
                    Operation::Apply => String::new(),
                    Operation::Update => entry.api_version.clone(),
                },
                subresource: entry.subresource.clone(),
            };
            let owned = Owned {
                set: FieldSet::from_json(fields.filter(|raw| !raw.is_empty()).unwrap_or(b"{}"))?,
                api_version: entry.api_version.clone(),
                time: entry.time,
            };
            all.insert(id, owned);
        }
        Ok(Self { all })
    }

    /// Returns the managed fields of an object, sorted as Kubernetes does.
    pub fn encode(&self) -> Vec<ManagedFieldsEntry> {
        self.encode_with(Vec::new())
    }

    /// Is [`Self::encode`] with entries of other managers.
    pub(super) fn encode_with(&self, others: Vec<ManagedFieldsEntry>) -> Vec<ManagedFieldsEntry> {
        let entries = self.all.iter().map(|(id, owned)| ManagedFieldsEntry {
            manager: id.manager.clone(),
            operation: format!("{:?}", id.operation),
            api_version: owned.api_version.clone(),
            time: owned.time,
            fields_type: FIELDS_V1.to_owned(),
            fields_v1: Some(FieldsV1 {
                raw: owned.set.to_json().into(),
            }),
            subresource: id.subresource.clone(),
        });
        let mut entries: Vec<_> = others.into_iter().chain(entries).collect();
        entries.sort_by(|one, two| rank(one).cmp(&rank(two)));
        entries
    }
}

/// Returns the keys by which entries are sorted.
fn rank(entry: &ManagedFieldsEntry) -> (&str, i64, [&str; 3]) {
    let id = [&*entry.manager, &entry.api_version, &entry.subresource];
    (&entry.operation, seconds(entry.time), id)
}
