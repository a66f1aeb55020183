//! A trace as Jaeger tells it, in the order in which a person reads it.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

/// All spans of one trace, by start.
#[derive(Debug)]
pub struct Cascade {
    /// 32 hex digits.
    pub id: String,
    spans: Vec<Span>,
}

/// One span; times in microseconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct Span {
    id: String,
    parent: String,
    /// Whose it is.
    pub service: String,
    /// What was done.
    pub name: String,
    /// To what, as far as it says.
    pub object: String,
    /// Why, as far as it says.
    pub because: String,
    /// Did it fail?
    pub failed: bool,
    /// When it began.
    pub start: u64,
    /// How long it took.
    pub took: u64,
}

impl Cascade {
    /// Reads one entry of `data` in an answer of `/api/traces`.
    pub fn read(json: &Value) -> Option<Self> {
        let spans = json["spans"].as_array()?.iter();
        let spans = spans.filter_map(|span| Span::read(span, &json["processes"]));
        let mut spans: Vec<_> = spans.collect();
        spans.sort_by_key(|span| span.start);
        let id = json["traceID"].as_str()?.to_owned();
        (!spans.is_empty()).then_some(Self { id, spans })
    }

    /// How many spans it has.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Who has a part in it.
    pub fn services(&self) -> BTreeSet<&str> {
        self.spans.iter().map(|span| &*span.service).collect()
    }

    /// When it began, and how long it took until its last end, in microseconds.
    pub fn extent(&self) -> (u64, u64) {
        let start = self.spans.first().map_or(0, |span| span.start);
        let ends = self.spans.iter().map(|span| span.start + span.took);
        (start, ends.max().unwrap_or(start) - start)
    }

    /// Spans that stand under no other that is here.
    pub fn tops(&self) -> Vec<&Span> {
        let known: HashSet<_> = self.spans.iter().map(|span| &span.id).collect();
        let on_top = |span: &&Span| !known.contains(&span.parent);
        self.spans.iter().filter(on_top).collect()
    }

    /// Spans below one.
    pub fn below(&self, span: &Span) -> Vec<&Span> {
        let below = self.spans.iter().filter(|one| one.parent == span.id);
        below.collect()
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

    /// Is it a wait rather than work?
    pub fn is_wait(&self) -> bool {
        let waits = [
            "delivery", "takeover", "queue", "barrier", "backoff", "rest",
        ];
        waits.contains(&&*self.name)
    }
}
