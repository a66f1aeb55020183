//! A ReplicaSet's cells.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::apps::ReplicaSet;

use super::{Cells, template};

impl Cells for ReplicaSet {
    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let (spec, status) = (&self.spec, &self.status);
        Some(match column {
            "Desired" => spec.replicas.unwrap_or_default().into(),
            "Current" => status.replicas.into(),
            "Ready" => status.ready_replicas.into(),
            _ => return template::cell(column, &spec.template, spec.selector.as_ref()),
        })
    }
}
