//! The log of a simulation: what was planned, written, refused.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use setpoint_codec::{CustomKinds, Kind, envelope};
use setpoint_model::{Key, Revision};
use setpoint_proto::Cause;
use setpoint_store::{Batch, Memory, Store as _, keys};

use crate::Call;

/// The log of a simulation. Clones are the same.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<Entry>>>);

/// An entry of the log.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A step of a plan, before it is executed.
    Planned(Planned),
    /// A committed write.
    Changed(Change),
    /// A write that the gateway refused.
    Refused(Refusal),
    /// A write that was carried out, and whose answer was lost.
    Lost(Arc<str>, Call),
    /// A process crashed.
    Crashed(Arc<str>),
}

/// A step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// The name of the controller.
    pub controller: String,
    /// The reconciled object, as its kind in lower case and its key.
    pub object: String,
    /// The name of the action, and the object that it touches.
    pub action: String,
    /// The reason of the step.
    pub because: String,
    /// The writers of the changes that woke the controller.
    pub woken_by: String,
}

/// A committed write of an object.
#[derive(Clone, Debug)]
pub struct Change {
    /// The kind.
    pub kind: &'static Kind,
    /// The key of the object.
    pub key: Key,
    /// The object before; `None` for a create.
    pub before: Option<Value>,
    /// The object after; `None` for a deletion.
    pub after: Option<Value>,
    /// The cause, with its writer.
    pub cause: Option<Cause>,
}

/// A write that the gateway refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The process.
    pub process: Arc<str>,
    /// The write.
    pub call: Call,
    /// The reason and message of the error.
    pub error: String,
}

impl Log {
    /// Appends an entry.
    pub fn push(&self, entry: Entry) {
        self.0.lock().push(entry);
    }

    /// Removes and returns all entries.
    pub fn take(&self) -> Vec<Entry> {
        std::mem::take(&mut *self.0.lock())
    }

    /// Appends the changes of a batch of the store.
    pub(crate) async fn record(&self, store: &Memory, batch: Batch) {
        for change in batch.changes {
            let custom = CustomKinds::default();
            let Some((kind, key)) = keys::parse(&custom, &change.key) else {
                continue;
            };
            let past = Revision::from_raw(batch.revision.raw() - 1);
            let before = store.get_at(&change.key, past).await.unwrap();
            let written = change
                .value
                .as_ref()
                .map(|value| envelope::read(value).unwrap());
            let cause = match &written {
                Some(written) => written.cause.clone(),
                None => change.cause,
            };
            let document = |raw: &[u8]| kind.decode(raw).unwrap().to_document();
            let before = before.map(|entry| document(&envelope::read(&entry.value).unwrap().raw));
            let after = written.map(|written| document(&written.raw));
            self.push(Entry::Changed(Change {
                kind,
                key,
                before,
                after,
                cause,
            }));
        }
    }
}
