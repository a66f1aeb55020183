//! A FlowSchema in force.

use std::fmt;
use std::sync::Arc;

use http::HeaderValue;
use setpoint_fairness::SchemaSpec;
use setpoint_proto::flowcontrol::FlowSchemaSpec;

use super::level::Level;
use super::metrics::Series;

/// A FlowSchema in force, with its level, and the series of metrics of both.
pub(super) struct Schema {
    pub(super) name: String,
    pub(super) spec: FlowSchemaSpec,
    pub(super) level: Arc<Level>,
    pub(super) series: Series,
    /// Its uid and that of the level when it came into force. Names would tell users how important they are.
    pub(super) uids: [HeaderValue; 2],
}

/// By name: its level has requests, which have schemas.
impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.name).finish()
    }
}

impl Schema {
    pub(super) fn new(schema: SchemaSpec, level: &Arc<Level>) -> Self {
        let header = |uid: &str| HeaderValue::try_from(uid).unwrap_or(HeaderValue::from_static(""));
        Self {
            uids: [header(&schema.uid), header(&level.uid())],
            series: Series::of(level.name(), &schema.name),
            level: level.clone(),
            name: schema.name,
            spec: schema.spec,
        }
    }
}
