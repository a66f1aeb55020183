//! The method `Watch`: a stream of the objects of all kinds, without changes that concern neither owners nor finalizers
//! nor a deletion, unless the watcher wants every change of a kind.

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use prost::Message;
use setpoint_codec::kind_of;
use setpoint_model::{Key, Revision};
use setpoint_proto::ApiError;
use setpoint_proto::core::{self, Namespace};
use setpoint_proto::meta::{ObjectMeta, OwnerReference, Time};
use setpoint_proto::setpoint::{MetadataEvent, ObjectMetadata, WatchMetadataRequest};
use setpoint_store::cache::{AllWatch, Written};
use tokio::time::Instant;
use tonic::{Request, Status};

use crate::grpc::method::WATCH_METADATA;
use crate::grpc::request::{open, revision};
use crate::grpc::telemetry::Call;
use crate::metrics::Watching;
use crate::registry::{Cached, Registry, Target};

/// The longest time without a bookmark, in which a watch that is lost can be continued at the last event or bookmark.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(10);

/// The stream of a watch.
pub(super) type Events = Pin<Box<dyn Stream<Item = Result<MetadataEvent, Status>> + Send>>;

/// The fields of the metadata that the stream needs: others are not decoded.
#[derive(Clone, PartialEq, Message)]
struct Links {
    #[prost(string, tag = "5")]
    uid: String,
    #[prost(message, optional, tag = "9")]
    deletion_timestamp: Option<Time>,
    #[prost(message, repeated, tag = "13")]
    owner_references: Vec<OwnerReference>,
    #[prost(string, repeated, tag = "14")]
    finalizers: Vec<String>,
}

/// An object of any kind.
#[derive(Message)]
struct AnyObject {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Links>,
}

/// Begins a watch.
pub(super) async fn begin(
    registry: &Arc<Registry>,
    request: Request<WatchMetadataRequest>,
) -> Result<Events, ApiError> {
    let (caller, request) = open(request, |message| message.trace.take())?;
    // Stands for all kinds in metrics.
    let target = Target::whole(kind_of::<Namespace>(), &Key::default());
    let namespaces = request.namespaces;
    let call = Call::new(WATCH_METADATA, &target).within(&namespaces);
    let caller = call.identified(registry, caller).await?;
    let open = Watching::begin(call.info());
    let after = match request.revision.as_str() {
        "" => None,
        text => Some(revision(text)?),
    };
    let watched = async { registry.cache().watch_all(after).await };
    let served = call.serve_watch(registry, &caller, watched.boxed(), after.is_none());
    let ((objects, changes), initialization) = served.await?;
    let end = after.is_none().then(|| MetadataEvent {
        initial_events_end: true,
        ..bookmark(changes.reached())
    });
    let selection = Selection {
        namespaces: namespaces.into_iter().collect(),
        changes_of: request.changes_of.into_iter().collect(),
    };
    let mut initial = objects;
    initial.retain(|object| selection.includes(object));
    let initial = initial.into_iter();
    let initial = initial.filter_map(|object| event(&object, false));
    let initial = stream::iter(initial.chain(end)).map(Ok);
    let events = initial.chain(follow(changes, selection));
    let events = initialization.over(open.over(events), ends_initial_state);
    Ok(Box::pin(events.map_err(Status::from)))
}

/// Returns whether the initial state has been sent.
fn ends_initial_state(event: &Result<MetadataEvent, ApiError>) -> bool {
    event.as_ref().is_ok_and(|event| event.initial_events_end)
}

/// The objects and changes that a watch selects.
struct Selection {
    /// Empty for all.
    namespaces: HashSet<String>,
    /// The kinds whose every change is sent.
    changes_of: HashSet<String>,
}

impl Selection {
    fn includes(&self, object: &Cached) -> bool {
        self.namespaces.is_empty() || self.namespaces.contains(&object.key.namespace)
    }

    /// Returns the event of a write, unless it has changed nothing that the stream sends.
    fn event(&self, write: &Written) -> Option<MetadataEvent> {
        if !self.includes(&write.new) {
            return None;
        }
        let new = event(&write.new, write.deleted)?;
        let resource = new.object.as_ref().map(|object| &object.resource);
        let any_change = resource.is_some_and(|resource| self.changes_of.contains(resource));
        let is_same = |old: &Cached| links(old).is_some_and(|old| same(&old, &new));
        let unchanged = !write.deleted && write.old.as_deref().is_some_and(is_same);
        (any_change || !unchanged).then_some(new)
    }
}

/// A watch, the revision of the last event, and when that was sent.
struct Following {
    selection: Selection,
    changes: AllWatch,
    sent: Revision,
    sent_at: Instant,
}

fn follow(
    changes: AllWatch,
    selection: Selection,
) -> impl Stream<Item = Result<MetadataEvent, ApiError>> + Send {
    let following = Following {
        selection,
        sent: changes.reached(),
        sent_at: Instant::now(),
        changes,
    };
    let batches = stream::try_unfold(following, |mut following| async move {
        let events = following.next().await?;
        Ok::<_, ApiError>(Some((stream::iter(events).map(Ok), following)))
    });
    batches.try_flatten()
}

impl Following {
    /// Waits for the next writes. Returns the events that they make, or a bookmark if one is due.
    async fn next(&mut self) -> Result<Vec<MetadataEvent>, ApiError> {
        let writes = self.changes.next().await?;
        let events = writes
            .iter()
            .filter_map(|write| self.selection.event(write));
        let mut events: Vec<_> = events.collect();
        let reached = self.changes.reached();
        let is_due = self.sent_at.elapsed() >= BOOKMARK_INTERVAL && self.sent < reached;
        if events.is_empty() && is_due {
            events.push(bookmark(reached));
        }
        if !events.is_empty() {
            (self.sent, self.sent_at) = (reached, Instant::now());
        }
        Ok(events)
    }
}

fn same(old: &Links, new: &MetadataEvent) -> bool {
    let new = new.object.as_ref().map(|object| &object.metadata);
    new.is_some_and(|new| {
        old.uid == new.uid
            && old.deletion_timestamp.is_some() == new.deletion_timestamp.is_some()
            && old.owner_references == new.owner_references
            && old.finalizers == new.finalizers
    })
}

fn links(object: &Cached) -> Option<Links> {
    AnyObject::decode(object.raw.as_ref()).ok()?.metadata
}

/// Returns the event of an object; `None` for an Event, as upstream: it is neither owner nor dependant.
fn event(object: &Cached, deleted: bool) -> Option<MetadataEvent> {
    let kind = object.kind;
    if kind.stored() == kind_of::<core::Event>() {
        return None;
    }
    let links = links(object).filter(|links| !links.uid.is_empty())?;
    Some(MetadataEvent {
        object: Some(ObjectMetadata {
            resource: kind.resource(),
            api_version: kind.api_version(),
            kind: kind.kind.clone(),
            metadata: ObjectMeta {
                namespace: object.key.namespace.clone(),
                name: object.key.name.clone(),
                uid: links.uid,
                resource_version: object.revision.to_string(),
                deletion_timestamp: links.deletion_timestamp,
                owner_references: links.owner_references,
                finalizers: links.finalizers,
                ..ObjectMeta::default()
            },
        }),
        deleted,
        revision: object.revision.to_string(),
        cause: object.cause(),
        initial_events_end: false,
    })
}

fn bookmark(revision: Revision) -> MetadataEvent {
    MetadataEvent {
        revision: revision.to_string(),
        ..MetadataEvent::default()
    }
}
