//! A Deployment's cells.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::apps::Deployment;

use super::{Cells, template};

impl Cells for Deployment {
    fn cell(&self, column: &str, _now: Timestamp) -> Option<Value> {
        let (spec, status) = (&self.spec, &self.status);
        Some(match column {
            "Ready" => {
                let wanted = spec.replicas.unwrap_or_default();
                format!("{}/{wanted}", status.ready_replicas).into()
            }
            "Up-to-date" => status.updated_replicas.into(),
            "Available" => status.available_replicas.into(),
            _ => return template::cell(column, &spec.template, spec.selector.as_ref()),
        })
    }
}
