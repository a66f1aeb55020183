//! The seats of a request, from what it asks for.

use setpoint_codec::Kind;
use setpoint_fairness::{ListRequest, Stats, Work, of_list, of_write};
use setpoint_store::cache::Cache;

use super::FlowControl;
use super::schema::Schema;
use crate::request::{Attributes, Query};

/// The objects that a request reads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    /// The kind that it names, if that is served here.
    kind: Option<&'static Kind>,
    /// `None` for a watch that begins with the next change.
    pub(super) list: Option<ListRequest>,
}

impl Reading {
    /// Returns what a request over HTTP reads.
    pub(crate) fn of_query(kind: Option<&'static Kind>, verb: &str, query: &Query) -> Self {
        let set = |name| query.get(name).is_some();
        let revision = query.get("resourceVersion").unwrap_or_default();
        let initial = match set("sendInitialEvents") {
            true => query.flag("sendInitialEvents"),
            false => ["", "0"].contains(&revision),
        };
        let limit = query.get("limit").and_then(|limit| limit.parse().ok());
        let list = ListRequest {
            is_single: false,
            limit: limit.unwrap_or_default(),
            from_store: set("continue") || query.get("resourceVersionMatch") == Some("Exact"),
            has_selector: set("labelSelector") || set("fieldSelector"),
        };
        Self {
            kind,
            list: (verb != "watch" || initial).then_some(list),
        }
    }

    /// Returns what a request for a collection reads.
    pub(crate) fn of_list(kind: &'static Kind, list: ListRequest) -> Self {
        Self {
            kind: Some(kind),
            list: Some(list),
        }
    }
}

impl FlowControl {
    /// Returns the work of a request of a schema.
    pub(super) fn estimate(
        &self,
        cache: &Cache,
        schema: &Schema,
        asked: &Attributes,
        reading: Reading,
    ) -> Work {
        let Some(resource) = &asked.resource else {
            return Work::default();
        };
        match (&*asked.verb, reading.list) {
            ("list" | "watch", Some(list)) => {
                let list = ListRequest {
                    is_single: !resource.name.is_empty(),
                    ..list
                };
                let stats = reading.kind.and_then(|kind| stats(cache, kind));
                of_list(list, stats, schema.level.max_seats())
            }
            // Nobody is told of a token.
            ("create", _) if resource.subresource == "token" => Work::default(),
            ("create" | "update" | "patch" | "delete", _) => {
                let told = self.told(resource);
                schema.series.told(told);
                of_write(told, schema.level.max_seats())
            }
            _ => Work::default(),
        }
    }
}

fn stats(cache: &Cache, kind: &'static Kind) -> Option<Stats> {
    let (objects, bytes) = cache.size(kind.stored())?;
    Some(Stats {
        objects: objects as u64,
        bytes: bytes as u64,
    })
}
