//! The last writer of each field, as far as the history reaches back. Pure.

use std::collections::HashSet;

use serde_json::{Value, json};
use setpoint_codec::diff;
use setpoint_proto::ApiError;
use setpoint_proto::setpoint::{Manager, WriteType};

use crate::explain::history::{self, History, Version};

/// The maximum number of fields listed for one writer.
const FIELDS: usize = 12;

/// Fields that the gateway sets on creation.
const IDENTITY: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata.creationTimestamp",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];

/// Returns the writers, the most recent first, each with the fields of which it is the last writer.
pub(super) fn of(history: &History) -> Result<Vec<Manager>, ApiError> {
    let mut managers: Vec<Manager> = Vec::new();
    let mut known = HashSet::new();
    for version in &history.versions {
        let mut fields = written(version)?;
        fields.retain(|field| known.insert(field.clone()));
        let cause = version.cause.clone().unwrap_or_default();
        if cause.writer.is_empty() || (fields.is_empty() && version.write != WriteType::Changed) {
            continue;
        }
        match managers.iter_mut().find(|one| one.name == cause.writer) {
            Some(manager) => manager.fields.extend(fields),
            None => managers.push(Manager {
                name: cause.writer,
                revision: version.revision.to_string(),
                written_ns: cause.written_ns,
                fields,
                more_fields: 0,
            }),
        }
    }
    managers.iter_mut().for_each(shorten);
    Ok(managers)
}

fn written(version: &Version) -> Result<Vec<String>, ApiError> {
    let changes = match version.write {
        WriteType::Deleted => Vec::new(),
        WriteType::Changed => version.changes.clone(),
        WriteType::Created | WriteType::Found => {
            let object: Value = history::json(&version.object)?;
            diff(version.object.kind, &json!({}), &object)
        }
    };
    let paths = changes.into_iter().map(|change| change.path);
    Ok(paths
        .filter(|path| !IDENTITY.contains(&path.as_str()))
        .collect())
}

fn shorten(manager: &mut Manager) {
    let more = manager.fields.len().saturating_sub(FIELDS);
    manager.more_fields = u32::try_from(more).unwrap_or(u32::MAX);
    manager.fields.truncate(FIELDS);
}
