//! A cascade, the trace of a write and of all writes that it caused, read from Jaeger's query API.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;
use setpoint_host::http_client;
use tokio::time::timeout;

/// Limit for the size of an answer: a cascade over thousands of Pods takes some tens of megabytes.
const MAX_BYTES: usize = 256 << 20;
/// Time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(20);

/// All spans of a trace, sorted by start.
#[derive(Debug)]
pub struct Cascade {
    /// The trace id, 32 hex digits.
    pub id: String,
    spans: Vec<Span>,
}

/// A span. Times are in microseconds, absolute ones since 1970.
#[derive(Clone, Debug, Default)]
pub struct Span {
    id: String,
    parent: String,
    /// The service that recorded it.
    pub service: String,
    /// The name of the operation.
    pub name: String,
    /// The name of its object, or empty.
    pub object: String,
    /// The recorded reason, or empty.
    pub because: String,
    /// Whether the operation failed.
    pub failed: bool,
    /// Start time.
    pub start: u64,
    /// Duration.
    pub took: u64,
}

impl Cascade {
    /// Parses an entry of `data` in an answer of `/api/traces`; `None` if it has no valid span.
    pub fn read(json: &Value) -> Option<Self> {
        let spans = json["spans"].as_array()?.iter();
        let spans = spans.filter_map(|span| Span::read(span, &json["processes"]));
        let mut spans: Vec<_> = spans.collect();
        spans.sort_by_key(|span| span.start);
        let id = json["traceID"].as_str()?.to_owned();
        (!spans.is_empty()).then_some(Self { id, spans })
    }

    /// Returns the number of spans.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the services that recorded spans.
    pub fn services(&self) -> BTreeSet<&str> {
        self.spans.iter().map(|span| &*span.service).collect()
    }

    /// Returns the start of the first span, and the time from there to the end of the last.
    pub fn extent(&self) -> (u64, u64) {
        let start = self.spans.first().map_or(0, |span| span.start);
        let ends = self.spans.iter().map(|span| span.start + span.took);
        (start, ends.max().unwrap_or(start) - start)
    }

    /// Returns the spans whose parent is not part of the trace.
    pub fn roots(&self) -> Vec<&Span> {
        let known: HashSet<_> = self.spans.iter().map(|span| &span.id).collect();
        let is_root = |span: &&Span| !known.contains(&span.parent);
        self.spans.iter().filter(is_root).collect()
    }

    /// Returns the spans whose parent is `span`.
    pub fn children(&self, span: &Span) -> Vec<&Span> {
        let children = self.spans.iter().filter(|one| one.parent == span.id);
        children.collect()
    }
}

impl Span {
    fn read(json: &Value, processes: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tags = json["tags"].as_array()?;
        let tag = |key: &str| {
            tags.iter()
                .find(|tag| tag["key"] == key)
                .map(|tag| &tag["value"])
        };
        let references = json["references"].as_array();
        let mut parents = references.into_iter().flatten();
        let parent = parents.find(|reference| reference["refType"] == "CHILD_OF");
        let named = ["deployment", "replicaset", "pod"].map(|kind| format!("k8s.{kind}.name"));
        let named = named.iter().find_map(|key| tag(key));
        Some(Self {
            id: text(&json["spanID"]),
            parent: parent
                .map(|parent| text(&parent["spanID"]))
                .unwrap_or_default(),
            service: text(&processes[json["processID"].as_str()?]["serviceName"]),
            name: text(&json["operationName"]),
            object: named.map(text).unwrap_or_default(),
            because: tag("because").map(text).unwrap_or_default(),
            failed: tag("otel.status_code").is_some_and(|code| code == "ERROR")
                || tag("error").is_some_and(|error| error == true),
            start: json["startTime"].as_u64()?,
            took: json["duration"].as_u64()?,
        })
    }

    /// Whether the span is a wait rather than work.
    pub fn is_wait(&self) -> bool {
        let waits = [
            "delivery", "takeover", "queue", "barrier", "backoff", "rest",
        ];
        waits.contains(&&*self.name)
    }
}

/// Sends a GET request for `path` to Jaeger at `url`, and parses the answer.
///
/// # Errors
/// Jaeger cannot be reached, answers with an error, or with something other than JSON.
pub async fn fetch(url: &str, path: &str) -> anyhow::Result<Value> {
    if !url.starts_with("http://") {
        bail!("{url} does not begin with http://");
    }
    let answer = timeout(
        TIMEOUT,
        http_client::get(&format!("{url}{path}"), MAX_BYTES),
    )
    .await;
    let answer = answer.with_context(|| format!("no answer within {TIMEOUT:?}"))??;
    match answer.body.trim() {
        body if answer.status == 200 => {
            serde_json::from_str(body).context("the answer is not JSON")
        }
        "" => bail!("{}", answer.status),
        body => bail!("{body}"),
    }
}
