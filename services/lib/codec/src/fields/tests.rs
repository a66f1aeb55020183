//! Tests of ownership: cases of Kubernetes' own tests, and properties.

mod cases;
mod encoded;
mod notation;
mod properties;

use serde_json::{Value, json};
use setpoint_proto::meta::{ManagedFieldsEntry, Time};

use super::*;
use crate::kinds;

/// An object with its managers.
struct World {
    kind: &'static Kind,
    live: Value,
    managers: Managers,
    clock: i64,
}

impl World {
    fn of(resource: &str) -> Self {
        let kind = kinds().by_resource(resource).unwrap();
        Self {
            kind,
            live: kind.empty_document().clone(),
            managers: Managers::default(),
            clock: 0,
        }
    }

    fn deployment() -> Self {
        Self::of("deployments.apps")
    }

    fn config(&self, body: Value) -> Value {
        let mut config = json!({"apiVersion": self.kind.api_version(), "kind": self.kind.kind});
        config
            .as_object_mut()
            .unwrap()
            .extend(body.as_object().unwrap().clone());
        config
    }

    fn edit<'a>(&mut self, manager: &'a str, reset: &'a FieldSet) -> Edit<'a> {
        self.clock += 1;
        Edit {
            kind: self.kind,
            manager,
            subresource: "",
            now: Time {
                seconds: Some(self.clock),
                nanos: Some(0),
            },
            reset,
        }
    }

    fn try_apply(&mut self, manager: &str, body: Value, force: bool) -> Result<bool, ApplyError> {
        let config = self.config(body);
        let reset = FieldSet::default();
        let edit = self.edit(manager, &reset);
        let mut managers = self.managers.clone();
        let new = managers.apply_or_upgrade(&edit, &self.live, &config, force)?;
        self.managers = managers;
        let is_changed = new.is_some();
        self.live = new.unwrap_or_else(|| self.live.clone());
        Ok(is_changed)
    }

    #[track_caller]
    fn apply(&mut self, manager: &str, body: Value) -> bool {
        self.try_apply(manager, body, false).unwrap()
    }

    #[track_caller]
    fn refused(&mut self, manager: &str, body: Value) -> String {
        match self.try_apply(manager, body, false) {
            Err(ApplyError::Conflicts(conflicts)) => conflicts.to_string(),
            Err(ApplyError::Unfit(problem) | ApplyError::Malformed(problem)) => problem,
            Ok(_) => panic!("it was applied"),
        }
    }

    fn update(&mut self, manager: &str, body: Value) {
        let new = self.config(body);
        let reset = FieldSet::default();
        let edit = self.edit(manager, &reset);
        self.managers.update(&edit, &self.live, &new).unwrap();
        self.live = new;
    }

    /// Returns the fields of a manager as JSON; null if it has none.
    fn owned(&self, manager: &str) -> Value {
        let entries = self.managers.encode();
        let entry = entries.into_iter().find(|entry| entry.manager == manager);
        entry.map_or(Value::Null, |entry| fields(&entry))
    }

    fn names(&self) -> Vec<String> {
        let entries = self.managers.encode();
        entries.into_iter().map(|entry| entry.manager).collect()
    }
}

fn fields(entry: &ManagedFieldsEntry) -> Value {
    serde_json::from_slice(&entry.fields_v1.as_ref().unwrap().raw).unwrap()
}
