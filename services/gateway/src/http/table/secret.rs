//! A Secret's cells: how many entries, never which.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::core::Secret;

use super::Cells;

impl Cells for Secret {
    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        (column == "Data").then(|| self.data.len().into())
    }
}
