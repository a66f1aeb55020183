//! Events: recorded without waiting, written in the background.

mod aggregator;
mod lru;
mod spam_filter;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_model::{Key, Meta, Target};
use setpoint_proto::core::ObjectReference;
use setpoint_proto::{ApiError, Resource, Retry, TraceContext};
use setpoint_telemetry::Span;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{Client, cascade, metrics};
use writer::Batcher;

/// The largest number of Events that wait to be written, some seconds of a burst; further ones are dropped.
const MAX_WAITING: usize = 1024;
/// The time limit of writing the last Events at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// Records Events about objects. Clones share one queue.
///
/// Repetitions are counted in one Event. As in upstream, 25 writes about an object are followed by one in five minutes,
/// which has the count of all occurrences. Recording neither blocks nor fails: if too many Events wait, further ones
/// are dropped and counted in the metrics.
#[derive(Clone, Debug)]
pub struct Recorder {
    component: Arc<str>,
    channel: Option<Channel>,
}

#[derive(Clone, Debug)]
struct Channel {
    notes: mpsc::Sender<Note>,
    closing: CancellationToken,
}

/// The type of an Event, as Kubernetes names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Type {
    Normal,
    Warning,
}

impl Type {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// An occurrence to record.
#[derive(Clone, Debug)]
pub(super) struct Note {
    pub(super) about: ObjectReference,
    /// The component that records it.
    pub(super) component: Arc<str>,
    pub(super) kind: Type,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) at: Timestamp,
    /// The trace context of the cascade.
    pub(super) trace: TraceContext,
}

impl Recorder {
    /// Returns a recorder for one instance of a component, for example of `replicaset-controller`.
    ///
    /// Must be called inside a tokio runtime. Its task ends when the last clone is dropped and all Events are written.
    pub fn new(gateway: Client, component: &str, instance: &str) -> Self {
        Self::of(gateway, component, instance, "")
    }

    /// Returns a recorder for a component that runs once on each node, such as `kubelet`; the node is its instance.
    pub fn on_node(gateway: Client, component: &str, node: &str) -> Self {
        Self::of(gateway, component, node, node)
    }

    fn of(gateway: Client, component: &str, instance: &str, host: &str) -> Self {
        let (notes, recorded) = mpsc::channel(MAX_WAITING);
        let closing = CancellationToken::new();
        let batcher = Batcher::new(recorded, closing.clone());
        let tasks = gateway.tasks().clone();
        let writer = writer::Writer::new(gateway, host, instance);
        let shared = Mutex::new((writer, batcher));
        tokio::spawn(async move {
            let start = || async {
                let (writer, batcher) = &mut *shared.lock().await;
                writer.run(batcher).await;
            };
            tasks.supervise("events", "", start).await;
        });
        Self {
            component: component.into(),
            channel: Some(Channel { notes, closing }),
        }
    }

    /// Returns a recorder that drops everything, for tests.
    pub fn silent() -> Self {
        Self {
            component: "".into(),
            channel: None,
        }
    }

    /// Returns a recorder for another component of the same instance, with the same queue.
    pub fn of_component(&self, component: &str) -> Self {
        Self {
            component: component.into(),
            ..self.clone()
        }
    }

    /// Records a normal Event.
    pub fn normal(&self, about: &ObjectReference, reason: &str, message: impl Into<String>) {
        self.record(about, Type::Normal, reason, message.into());
    }

    /// Records a warning.
    pub fn warning(&self, about: &ObjectReference, reason: &str, message: impl Into<String>) {
        self.record(about, Type::Warning, reason, message.into());
    }

    /// Writes the waiting Events within a time limit. Later ones are dropped.
    pub async fn finish(&self) {
        let Some(channel) = &self.channel else { return };
        channel.closing.cancel();
        if timeout(FLUSH_TIMEOUT, channel.notes.closed())
            .await
            .is_err()
        {
            warn!("the last Events were not written in time");
        }
    }

    fn record(&self, about: &ObjectReference, kind: Type, reason: &str, message: String) {
        let Some(channel) = &self.channel else { return };
        let span = Span::current();
        span.add_event(reason, &message);
        let note = Note {
            about: about.clone(),
            component: self.component.clone(),
            kind,
            reason: reason.to_owned(),
            message,
            at: Timestamp::now(),
            trace: cascade::context(&span),
        };
        if channel.notes.try_send(note).is_err() {
            metrics::event_dropped();
            let error = "too many Events wait to be written";
            debug!(object = object(about), reason, error, "Event dropped");
        }
    }
}

/// Returns the object of an Event for the log: `Pod default/web`.
fn object(about: &ObjectReference) -> String {
    let key = Key::new(&about.namespace, &about.name);
    format!("{} {key}", about.kind)
}

/// Returns whether an error of a write is reported to the user.
///
/// Not reported: conflicts, which the next reconcile resolves, and errors in a namespace that is being deleted.
pub fn is_reported(error: &ApiError) -> bool {
    error.reason.retry() != Retry::AfterRefresh && !error.is_namespace_terminating()
}

/// Returns a reference to an object.
pub fn reference_to<T: Resource>(object: &T) -> ObjectReference {
    let meta = object.meta();
    ObjectReference {
        kind: T::KIND.to_owned(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        api_version: T::API_VERSION.to_owned(),
        resource_version: meta.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// Returns a reference to an object by its metadata.
pub fn reference<T: Resource>(meta: &Meta) -> ObjectReference {
    reference_to_target::<T>(&Target::of(meta))
}

/// Returns a reference to the version of an object that an action names.
pub fn reference_to_target<T: Resource>(target: &Target) -> ObjectReference {
    ObjectReference {
        kind: T::KIND.to_owned(),
        namespace: target.key.namespace.clone(),
        name: target.key.name.clone(),
        uid: target.uid.clone(),
        api_version: T::API_VERSION.to_owned(),
        resource_version: target.revision.to_string(),
        ..ObjectReference::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks E11: the log says which object a dropped Event is about.
    #[test]
    fn an_object_is_named_by_its_kind_and_its_key() {
        let about = |namespace: &str| ObjectReference {
            kind: "Pod".to_owned(),
            namespace: namespace.to_owned(),
            name: "web".to_owned(),
            ..ObjectReference::default()
        };
        assert_eq!(object(&about("shop")), "Pod shop/web");
        assert_eq!(object(&about("")), "Pod web");
    }
}
