//! A ConfigMap's cells.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::core::ConfigMap;

use super::Cells;

impl Cells for ConfigMap {
    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let entries = self.data.len() + self.binary_data.len();
        (column == "Data").then(|| entries.into())
    }
}
