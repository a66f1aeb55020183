//! What a watcher knows.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::BodyDataStream;
use futures::StreamExt as _;
use serde_json::Value;
use setpoint_codec::Kind;
use tokio::time::timeout;

/// In paused time this passes once there is nothing else to do: then all has been told.
const QUIET: Duration = Duration::from_millis(1);

/// Namespace and name.
pub type Key = (String, String);

/// A watch of a kind, and the objects as it told them.
pub struct Replica {
    pub kind: &'static Kind,
    /// Of the list that it should agree with.
    pub path: String,
    pub objects: BTreeMap<Key, Value>,
    body: BodyDataStream,
    read: Vec<u8>,
    revision: u64,
}

impl Replica {
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

    /// Takes in what was told since; returns how many writes that were. Initial objects are none.
    pub async fn follow(&mut self) -> usize {
        let mut told = 0;
        while let Ok(chunk) = timeout(QUIET, self.body.next()).await {
            let chunk = chunk.expect("a watch without an end goes on");
            self.read
                .extend_from_slice(&chunk.expect("memory does not fail"));
            while let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                let event = serde_json::from_slice(&line).expect("an event is JSON");
                told += usize::from(self.take(event));
            }
        }
        told
    }

    fn take(&mut self, mut event: Value) -> bool {
        let object = event["object"].take();
        let of = event["type"].as_str().expect("an event has a type");
        let revision = revision(&object);
        if of == "BOOKMARK" {
            assert!(revision >= self.revision, "a bookmark went back");
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

/// Where an object is.
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
        .expect("what is told has a revision")
}
