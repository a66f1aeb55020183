//! A watcher that keeps the state of the watched objects.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::BodyDataStream;
use futures::StreamExt as _;
use serde_json::Value;
use setpoint_codec::Kind;
use tokio::time::timeout;

/// In paused time this passes when all tasks are idle, so all events have been sent.
const QUIET: Duration = Duration::from_millis(1);

/// Namespace and name.
pub type Key = (String, String);

/// A watch of a kind, and the objects according to its events.
pub struct Watcher {
    pub kind: &'static Kind,
    /// The path of the list that the objects must be equal to.
    pub path: String,
    pub objects: BTreeMap<Key, Value>,
    body: BodyDataStream,
    read: Vec<u8>,
    revision: u64,
}

impl Watcher {
    pub fn new(kind: &'static Kind, path: String, body: BodyDataStream) -> Self {
        Self {
            kind,
            path,
            objects: BTreeMap::new(),
            body,
            read: Vec::new(),
            revision: 0,
        }
    }

    /// Applies the events since the last call; returns the number of writes, without initial objects.
    pub async fn follow(&mut self) -> usize {
        let mut writes = 0;
        while let Ok(chunk) = timeout(QUIET, self.body.next()).await {
            let chunk = chunk.expect("the watch does not end");
            self.read
                .extend_from_slice(&chunk.expect("the body does not fail"));
            while let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                let event = serde_json::from_slice(&line).expect("an event is JSON");
                writes += usize::from(self.take(event));
            }
        }
        writes
    }

    fn take(&mut self, mut event: Value) -> bool {
        let object = event["object"].take();
        let of = event["type"].as_str().expect("an event has a type");
        let revision = revision(&object);
        if of == "BOOKMARK" {
            assert!(
                revision >= self.revision,
                "the revision of a bookmark decreased"
            );
            self.revision = revision;
            return false;
        }
        assert_eq!(object["kind"], self.kind.kind, "{of}: {object}");
        let known = self.objects.contains_key(&key(&object));
        let initial = of == "ADDED" && revision <= self.revision;
        assert!(
            initial || revision > self.revision,
            "{of} {revision} after {}",
            self.revision
        );
        self.revision = self.revision.max(revision);
        assert_eq!(known, of != "ADDED", "{of}: {object}");
        match of {
            "ADDED" | "MODIFIED" => drop(self.objects.insert(key(&object), object)),
            "DELETED" => drop(self.objects.remove(&key(&object))),
            _ => panic!("{of}: {object}"),
        }
        true
    }
}

/// Returns the key of an object.
pub fn key(object: &Value) -> Key {
    let text = |name: &str| {
        object["metadata"][name]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    (text("namespace"), text("name"))
}

fn revision(object: &Value) -> u64 {
    let text = object["metadata"]["resourceVersion"].as_str();
    text.and_then(|text| text.parse().ok())
        .expect("an event has a revision")
}
