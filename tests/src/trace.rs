//! A trace read from Jaeger's query API, and queries on it.

use std::collections::BTreeSet;

use serde_json::Value;

/// All spans of one trace id.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The trace id, 32 hex digits.
    pub id: String,
    /// The spans, sorted by start.
    pub spans: Vec<Span>,
}

/// A span. Times are in microseconds since 1970.
#[derive(Clone, Debug)]
pub struct Span {
    /// The span id, 16 hex digits.
    pub id: String,
    /// The id of the parent; empty for a root.
    pub parent: String,
    /// The `service.name` of the process that exported it.
    pub service: String,
    /// The name of the operation.
    pub name: String,
    /// Start time.
    pub start: u64,
    /// End time.
    pub end: u64,
    /// The ids of linked traces.
    pub links: Vec<String>,
    /// The attributes.
    pub tags: Vec<(String, Value)>,
    /// The span events, each as the JSON of its fields.
    pub marks: Vec<String>,
}

impl Trace {
    /// Parses an entry of `data` in an answer of `/api/traces`.
    pub fn read(json: &Value) -> Option<Self> {
        let processes = &json["processes"];
        let spans = json["spans"].as_array()?;
        let mut spans: Vec<_> = spans
            .iter()
            .filter_map(|span| Span::read(span, processes))
            .collect();
        spans.sort_by_key(|span| span.start);
        let id = json["traceID"].as_str()?.to_owned();
        Some(Self { id, spans })
    }

    /// Returns the services that recorded spans.
    pub fn services(&self) -> BTreeSet<&str> {
        self.spans.iter().map(|span| &*span.service).collect()
    }

    /// Returns the spans whose parent is missing.
    pub fn orphans(&self) -> Vec<&Span> {
        let ids: BTreeSet<_> = self.spans.iter().map(|span| &span.id).collect();
        let lost = |span: &&Span| !span.parent.is_empty() && !ids.contains(&span.parent);
        self.spans.iter().filter(lost).collect()
    }

    /// Returns the spans without a parent.
    pub fn roots(&self) -> Vec<&Span> {
        self.spans
            .iter()
            .filter(|span| span.parent.is_empty())
            .collect()
    }

    /// Returns the last spans of all paths from a root, parent to child, that match `path`: a service and a span name
    /// for each step. A name that ends with `…` matches all names with that prefix.
    pub fn follow(&self, path: &[(&str, &str)]) -> Vec<&Span> {
        let mut reached: Vec<&Span> = Vec::new();
        for (depth, step) in path.iter().enumerate() {
            let is_next = |span: &&Span| {
                span.is(step)
                    && match depth {
                        0 => span.parent.is_empty(),
                        _ => reached.iter().any(|above| above.id == span.parent),
                    }
            };
            reached = self.spans.iter().filter(is_next).collect();
        }
        reached
    }

    /// Returns the time from the first start to the last end, in microseconds.
    pub fn lasted(&self) -> u64 {
        let start = self.spans.iter().map(|span| span.start).min();
        let end = self.spans.iter().map(|span| span.end).max();
        end.unwrap_or_default() - start.unwrap_or_default()
    }

    /// Returns the share of the trace's duration that is covered by spans.
    pub fn explained(&self) -> f64 {
        let (mut covered, mut reached) = (0, 0);
        for span in &self.spans {
            covered += span.end.saturating_sub(span.start.max(reached));
            reached = reached.max(span.end);
        }
        covered as f64 / self.lasted().max(1) as f64
    }

    /// Formats the spans as an indented list, for the messages of failed tests.
    pub fn tree(&self) -> String {
        let mut lines = String::new();
        let first = self.spans.first().map_or(0, |span| span.start);
        let known: BTreeSet<_> = self.spans.iter().map(|span| &span.id).collect();
        for top in self
            .spans
            .iter()
            .filter(|span| !known.contains(&span.parent))
        {
            self.draw(top, 0, first, &mut lines);
        }
        lines
    }

    fn draw(&self, span: &Span, depth: usize, first: u64, lines: &mut String) {
        let at = (span.start - first) as f64 / 1000.0;
        let took = (span.end - span.start) as f64 / 1000.0;
        let indent = "  ".repeat(depth);
        let because = span
            .tag("because")
            .and_then(Value::as_str)
            .unwrap_or_default();
        lines.push_str(&format!(
            "{at:9.2} +{took:8.2} ms  {indent}{} {} {because}\n",
            span.service, span.name
        ));
        for child in self.spans.iter().filter(|child| child.parent == span.id) {
            self.draw(child, depth + 1, first, lines);
        }
    }
}

impl Span {
    fn read(json: &Value, processes: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let references = json["references"].as_array().cloned().unwrap_or_default();
        let of_type =
            |kind: &'static str| references.iter().filter(move |one| one["refType"] == kind);
        let start = json["startTime"].as_u64()?;
        let tags = json["tags"].as_array()?.iter();
        let process = &processes[json["processID"].as_str()?];
        Some(Self {
            id: text(&json["spanID"]),
            parent: of_type("CHILD_OF")
                .map(|one| text(&one["spanID"]))
                .next()
                .unwrap_or_default(),
            service: text(&process["serviceName"]),
            name: text(&json["operationName"]),
            start,
            end: start + json["duration"].as_u64()?,
            links: of_type("FOLLOWS_FROM")
                .map(|one| text(&one["traceID"]))
                .collect(),
            tags: tags
                .map(|tag| (text(&tag["key"]), tag["value"].clone()))
                .collect(),
            marks: json["logs"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|event| event["fields"].to_string())
                .collect(),
        })
    }

    /// Returns the value of an attribute.
    pub fn tag(&self, key: &str) -> Option<&Value> {
        let found = self.tags.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value)
    }

    /// Whether the span has this service and name. A name that ends with `…` matches all names with that prefix.
    pub fn is(&self, (service, name): &(&str, &str)) -> bool {
        let named = match name.strip_suffix('…') {
            Some(beginning) => self.name.starts_with(beginning),
            None => self.name == *name,
        };
        named && self.service == *service
    }
}
