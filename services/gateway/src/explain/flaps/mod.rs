//! Two writers that undo each other: the same field, two managers, taking turns.
//!
//! Every gateway sees every write, so each finds the same flaps by itself, and they agree on one Event for each.

mod tell;
mod trail;
mod trails;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use prost::Message;
use setpoint_codec::{Kind, kinds};
use setpoint_store::cache::Change;

use crate::explain::history::differences;
use crate::kinds::Writes;
use crate::registry::{Cached, Registry};
use tell::Teller;
use trail::{Changed, Write};
use trails::Trails;

pub(crate) use tell::{FIELD, MANAGERS, SEPARATOR};

/// Follows all writes, for ever, and tells of fields that flap: at least four turns within `window`.
pub(crate) async fn watch(registry: Arc<Registry>, instance: String, window: Duration) {
    registry.cache().synced().await;
    let teller = Teller::new(registry.clone(), instance);
    let stored = kinds().iter().filter(|kind| is_of_interest(kind));
    join_all(stored.map(|kind| follow(&registry, &teller, kind, window))).await;
}

/// Returns whether two writers of such objects can undo each other's writes. Leases change hands, and Events count.
fn is_of_interest(kind: &Kind) -> bool {
    crate::kinds::of(kind).writes() == Writes::Changes
}

async fn follow(registry: &Registry, teller: &Teller, kind: &'static Kind, window: Duration) {
    let mut changes = registry.cache().changes(kind);
    let mut trails = Trails::new(window);
    while let Some(changes) = changes.next().await {
        for change in changes {
            let Some(write) = write(change) else { continue };
            let object = write.change.new.clone();
            let Some(uid) = uid(&object) else { continue };
            let at_ns = write.at_ns;
            for flap in trails.enter(&uid, write) {
                teller.tell(&object, at_ns, &flap).await;
            }
        }
    }
}

/// Returns a write; `None` if it does not name its writer.
fn write(change: Change) -> Option<Write<Change>> {
    let cause = change.new.cause()?;
    (!cause.writer.is_empty()).then_some(Write {
        writer: cause.writer,
        at_ns: cause.written_ns,
        change,
    })
}

/// The part of any object that tells it from another of the same name.
#[derive(Message)]
struct Bare {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Identity>,
}

#[derive(Message)]
struct Identity {
    #[prost(string, tag = "5")]
    uid: String,
}

fn uid(object: &Cached) -> Option<String> {
    let bare = Bare::decode(object.raw.as_ref()).ok()?;
    Some(bare.metadata?.uid).filter(|uid| !uid.is_empty())
}

/// Fields that the gateway itself sets when someone asks for something else.
const CONSEQUENCES: [&str; 4] = [
    "metadata.creationTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.deletionTimestamp",
    "metadata.uid",
];

/// Returns the fields that writers set because they wanted to.
fn wanted(paths: impl Iterator<Item = String>) -> BTreeSet<String> {
    let consequence = |path: &String| CONSEQUENCES.contains(&path.as_str());
    paths.filter(|path| !consequence(path)).collect()
}

impl Changed for Change {
    fn fields(&self) -> BTreeSet<String> {
        let differences = differences(&self.old, &self.new).unwrap_or_default();
        wanted(differences.into_iter().map(|one| one.path))
    }

    fn then(&mut self, later: Self) {
        self.new = later.new;
    }

    fn size(&self) -> usize {
        let size = |object: &Cached| object.object.len();
        size(&self.old) + size(&self.new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F24.
    #[test]
    fn nobody_is_accused_of_what_the_gateway_sets() {
        let paths = ["metadata.deletionTimestamp", "spec.replicas"];
        let wanted = wanted(paths.map(str::to_owned).into_iter());
        assert!(wanted.into_iter().eq(["spec.replicas"]));
    }
}
