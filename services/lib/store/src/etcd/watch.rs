//! The watch: every revision of etcd, each as a whole.
//!
//! It includes all keys, not only those of objects. So each revision yields a batch, and a reader that waits for the
//! revision of a linearizable read does not wait in vain.
//!
//! 2026-11: we chose one watch of everything over one for each kind, because the order between kinds is then etcd's
//! own, a revision is applied as a whole, and one cursor says how far the cache is. Wrong if a gateway should serve
//! some kinds only, or one kind's changes exceed what one stream delivers.

use std::collections::VecDeque;
use std::time::Duration;

use etcd_client::proto::{PbEvent, PbWatchResponse};
use etcd_client::{WatchClient, WatchOptions, WatchStream};
use futures::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use prost::Message as _;
use setpoint_model::Revision;
use setpoint_proto::Cause;
use tokio::time::timeout;

use super::error_class::ErrorClass;
use super::read::text;
use super::{raw, revision};
use crate::{Batch, Change, Error, Form, KeyChange, keys};

const PUT: i32 = 0;

/// Returns the revisions after `after`, until the watch fails.
pub(super) fn follow(
    client: WatchClient,
    after: Revision,
    open_timeout: Duration,
) -> BoxStream<'static, Result<Batch, Error>> {
    let all = WatchOptions::new().with_all_keys();
    let opened = stream::once(open(client, "".into(), all, after, open_timeout));
    opened
        .flat_map(|opened| match opened {
            Ok(watch) => batches_of(watch),
            Err(error) => stream::iter([Err(error)]).boxed(),
        })
        .boxed()
}

/// Returns the changes of one key after `after`, until the watch fails.
pub(super) fn follow_key(
    client: WatchClient,
    key: String,
    after: Revision,
    open_timeout: Duration,
) -> BoxStream<'static, Result<KeyChange, Error>> {
    let opening = open(client, key, WatchOptions::new(), after, open_timeout);
    let opened = stream::once(opening).map(|opened| opened.map(changes_of));
    opened.try_flatten().boxed()
}

/// Opens the watch. Without a timeout the call would hang on a member that has stopped.
async fn open(
    mut client: WatchClient,
    key: String,
    options: WatchOptions,
    after: Revision,
    open_timeout: Duration,
) -> Result<WatchStream, Error> {
    let options = options
        .with_start_revision(raw(after).saturating_add(1))
        .with_fragment();
    match timeout(open_timeout, client.watch(key, Some(options))).await {
        Ok(answer) => answer.map_err(|error| ErrorClass::from(error).into_error()),
        Err(_) => Err(Error::Timeout),
    }
}

fn batches_of(watch: WatchStream) -> BoxStream<'static, Result<Batch, Error>> {
    let start = Follower {
        watch,
        fragments: Vec::new(),
        complete: VecDeque::new(),
        broken: false,
    };
    stream::unfold(start, |mut follower| async {
        let next = follower.next().await?;
        follower.broken = next.is_err();
        Some((next, follower))
    })
    .boxed()
}

/// Returns the events of a watch of one key. Those of a response that etcd has split are whole.
fn changes_of(watch: WatchStream) -> impl Stream<Item = Result<KeyChange, Error>> {
    let responses = stream::try_unfold(watch, |mut watch| async move {
        let response = response(&mut watch).await?;
        let events: Vec<_> = response.events.into_iter().filter_map(change).collect();
        Ok(Some((stream::iter(events.into_iter().map(Ok)), watch)))
    });
    responses.try_flatten()
}

fn change(event: PbEvent) -> Option<KeyChange> {
    let kv = event.kv?;
    Some(KeyChange {
        revision: revision(kv.mod_revision),
        value: (event.r#type == PUT).then(|| kv.value.into()),
    })
}

/// Waits for the next response of a watch.
async fn response(watch: &mut WatchStream) -> Result<PbWatchResponse, Error> {
    let message = watch.message().await;
    let message = message.map_err(|error| ErrorClass::from(error).into_error())?;
    let Some(response) = message else {
        return Err(Error::Unavailable("etcd has ended the watch".into()));
    };
    let response = response.0;
    // After either of these etcd leaves the stream open, but sends nothing.
    if response.compact_revision > 0 {
        return Err(Error::Expired);
    }
    match response.canceled {
        true => Err(Error::Unavailable(response.cancel_reason)),
        false => Ok(response),
    }
}

struct Follower {
    watch: WatchStream,
    /// The events so far of a response that etcd has split.
    fragments: Vec<PbEvent>,
    /// Batches of complete responses.
    complete: VecDeque<Batch>,
    broken: bool,
}

impl Follower {
    async fn next(&mut self) -> Option<Result<Batch, Error>> {
        while !self.broken {
            if let Some(batch) = self.complete.pop_front() {
                return Some(Ok(batch));
            }
            match response(&mut self.watch).await {
                Ok(response) => self.take(response),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    fn take(&mut self, response: PbWatchResponse) {
        self.fragments.extend(response.events);
        if !response.fragment {
            self.complete
                .extend(batches(std::mem::take(&mut self.fragments)));
        }
    }
}

/// Groups events into batches. Events of one revision are adjacent.
fn batches(events: Vec<PbEvent>) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    let mut tombstones: Vec<(Revision, Cause)> = Vec::new();
    for event in events {
        let Some(kv) = event.kv else { continue };
        let revision = revision(kv.mod_revision);
        if batches.last().is_none_or(|last| last.revision != revision) {
            batches.push(Batch {
                revision,
                changes: Vec::new(),
            });
        }
        let Some(batch) = batches.last_mut() else {
            continue;
        };
        let key = text(kv.key);
        if key.starts_with(keys::ROOT) {
            let value = (event.r#type == PUT).then(|| kv.value.into());
            batch.changes.push(Change {
                key,
                value,
                cause: None,
                form: Form::default(),
            });
        } else if key == keys::TOMBSTONE {
            let cause = Cause::decode(kv.value.as_slice());
            // A deletion without a cause has an identity only.
            let cause = cause.ok().filter(|cause| *cause != Cause::default());
            tombstones.extend(cause.map(|cause| (revision, cause)));
        }
    }
    attach(&mut batches, tombstones);
    batches
}

/// Sets the causes of deletions. Both lists are in order of revision.
fn attach(batches: &mut [Batch], tombstones: Vec<(Revision, Cause)>) {
    let mut batches = batches.iter_mut();
    for (revision, cause) in tombstones {
        let Some(batch) = batches.find(|batch| batch.revision == revision) else {
            return;
        };
        for change in batch
            .changes
            .iter_mut()
            .filter(|change| change.value.is_none())
        {
            change.cause = Some(cause.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use etcd_client::proto::PbKeyValue;

    use super::*;

    fn event(kind: i32, key: &str, revision: i64) -> PbEvent {
        let kv = PbKeyValue {
            key: key.into(),
            value: b"v".to_vec(),
            mod_revision: revision,
            ..Default::default()
        };
        PbEvent {
            r#type: kind,
            kv: Some(kv),
            ..Default::default()
        }
    }

    #[test]
    fn events_of_one_revision_are_one_batch() {
        let events = vec![
            event(PUT, "/registry/a", 4),
            event(PUT, "/registry/b", 4),
            event(1, "/registry/a", 5),
        ];
        let batches = batches(events);
        let sizes: Vec<_> = batches
            .iter()
            .map(|batch| (batch.revision.raw(), batch.changes.len()))
            .collect();
        assert_eq!(sizes, [(4, 2), (5, 1)]);
        assert_eq!(batches[1].changes[0].value, None);
    }

    #[test]
    fn a_revision_without_changes_of_objects_is_an_empty_batch() {
        let batches = batches(vec![event(PUT, "/other", 4)]);
        assert_eq!(
            batches,
            [Batch {
                revision: Revision::from_raw(4),
                changes: vec![]
            }]
        );
    }

    #[test]
    fn the_cause_of_a_deletion_is_read_from_the_tombstone_of_its_revision() {
        let cause = Cause {
            writer: "kubectl".into(),
            ..Default::default()
        };
        let mut tombstone = event(PUT, keys::TOMBSTONE, 5);
        tombstone.kv.as_mut().unwrap().value = cause.encode_to_vec();
        let batches = batches(vec![
            event(PUT, "/registry/a", 4),
            event(1, "/registry/a", 5),
            tombstone,
        ]);
        assert_eq!(batches[0].changes[0].cause, None);
        assert_eq!(batches[1].changes[0].cause, Some(cause));
    }
}
