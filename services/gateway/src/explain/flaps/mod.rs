//! Detection of flapping fields: two managers that undo each other's writes of one field.
//!
//! Every gateway follows every write and finds the same flaps; they agree on one Event for each.

mod events;
mod histories;
mod write_history;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use prost::Message;
use setpoint_codec::{Kind, kind_of, kinds};
use setpoint_kinds::Writes;
use setpoint_proto::core::ResourceQuota;
use setpoint_proto::policy::PodDisruptionBudget;
use setpoint_store::cache::{ChangeFeed, Update};

use crate::explain::history::differences;
use crate::registry::{Cached, Registry};
use events::Reporter;
use histories::Histories;
use write_history::{FieldChanges, Write};

pub(crate) use events::{FIELD, MANAGERS, SEPARATOR, event_namespace};

/// Follows all writes, and reports the fields that two managers wrote in at least four turns within `window`. Does not
/// return.
pub(crate) async fn watch(registry: Arc<Registry>, instance: String, window: Duration) {
    registry.cache().synced().await;
    let reporter = Reporter::new(registry.clone(), instance);
    let cache = registry.cache();
    let watched = kinds().iter().filter(|kind| is_watched(kind));
    // Custom kinds share one history, so that its memory is bounded however many there are.
    let feeds = watched
        .map(|kind| cache.changes(kind))
        .chain([cache.custom_changes()]);
    join_all(feeds.map(|feed| follow(feed, &reporter, window))).await;
}

/// Returns whether writes of the kind change intent or state, so that two writers can undo each other.
fn is_watched(kind: &Kind) -> bool {
    setpoint_kinds::of(kind).writes() == Writes::Changes
}

async fn follow(mut changes: ChangeFeed, reporter: &Reporter, window: Duration) {
    let mut histories = Histories::new(window);
    while let Some(changes) = changes.next().await {
        for change in changes {
            let Some(write) = write(change) else { continue };
            let object = write.change.new.clone();
            let Some(uid) = uid(&object) else { continue };
            let at_ns = write.at_ns;
            for flap in histories.enter(&uid, write) {
                reporter.report(&object, at_ns, &flap).await;
            }
        }
    }
}

/// Returns the write of a change; `None` if its writer is not known.
fn write(change: Update) -> Option<Write<Update>> {
    let cause = change.new.cause()?;
    (!cause.writer.is_empty()).then_some(Write {
        writer: cause.writer,
        at_ns: cause.written_ns,
        change,
    })
}

/// The part of an encoded object that contains its uid.
#[derive(Message)]
struct Partial {
    #[prost(message, optional, tag = "1")]
    metadata: Option<PartialMetadata>,
}

#[derive(Message)]
struct PartialMetadata {
    #[prost(string, tag = "5")]
    uid: String,
}

fn uid(object: &Cached) -> Option<String> {
    let partial = Partial::decode(object.raw.as_ref()).ok()?;
    Some(partial.metadata?.uid).filter(|uid| !uid.is_empty())
}

/// Fields that the gateway sets as a consequence of a request.
const CONSEQUENCES: [&str; 4] = [
    "metadata.creationTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.deletionTimestamp",
    "metadata.uid",
];

/// Returns the fields that the writer itself set.
fn intended(kind: &Kind, paths: impl Iterator<Item = String>) -> BTreeSet<String> {
    let consequence = |path: &String| CONSEQUENCES.contains(&path.as_str());
    paths
        .filter(|path| !consequence(path) && !is_count(kind, path))
        .collect()
}

/// Returns whether a field is counted by requests of users and by a controller, which are meant to write it in turns:
/// what is used of a quota, and how many evictions a budget allows.
fn is_count(kind: &Kind, path: &str) -> bool {
    (kind == kind_of::<ResourceQuota>() && path.starts_with("status.used"))
        || (kind == kind_of::<PodDisruptionBudget>() && path.starts_with("status."))
}

impl FieldChanges for Update {
    fn fields(&self) -> BTreeSet<String> {
        let differences = differences(&self.old, &self.new).unwrap_or_default();
        let paths = differences.into_iter().map(|one| one.path);
        intended(self.new.kind, paths)
    }

    fn extend(&mut self, later: Self) {
        self.new = later.new;
    }

    fn size(&self) -> usize {
        let size = |object: &Cached| object.object.len();
        size(&self.old) + size(&self.new)
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Pod;

    use super::*;

    /// Checks F24.
    #[test]
    fn fields_that_the_gateway_sets_are_not_attributed_to_the_writer() {
        let paths = ["metadata.deletionTimestamp", "spec.replicas"];
        let intended = intended(kind_of::<Pod>(), paths.map(str::to_owned).into_iter());
        assert!(intended.into_iter().eq(["spec.replicas"]));
    }

    /// Requests of users take from quotas and budgets, and controllers count anew.
    #[test]
    fn counts_are_written_in_turns() {
        let of = |kind: &Kind| {
            let paths = ["status.used[pods]", "status.disruptionsAllowed", "spec.a"];
            let intended = intended(kind, paths.map(str::to_owned).into_iter());
            intended.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(
            of(kind_of::<ResourceQuota>()),
            ["spec.a", "status.disruptionsAllowed"]
        );
        assert_eq!(of(kind_of::<PodDisruptionBudget>()), ["spec.a"]);
        assert_eq!(of(kind_of::<Pod>()).len(), 3);
    }
}
