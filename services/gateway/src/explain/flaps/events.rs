//! Reports flaps: one Event for each field and pair of managers, written by one of several gateways.

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_codec::{Kind, Object as _, kinds};
use setpoint_model::{Key, Revision};
use setpoint_proto::core::{Event, EventSource, ObjectReference};
use setpoint_proto::meta::{ObjectMeta, Time};
use setpoint_proto::{ApiError, Reason, Resource as _};
use tracing::warn;

use super::write_history::Flap;
use crate::metrics;
use crate::registry::{AtLeast, Cached, Registry, RequestContext, Target};

/// The Event's annotation that names the field.
pub(crate) const FIELD: &str = "setpoint.dev/field";
/// The Event's annotation that names both managers.
pub(crate) const MANAGERS: &str = "setpoint.dev/managers";
/// The separator of the managers.
pub(crate) const SEPARATOR: &str = ",";
/// The Event's annotation with the revision of the last counted write of the object.
const REVISION: &str = "setpoint.dev/revision";

const REASON: &str = "FieldFlapping";
const COMPONENT: &str = "gateway";
/// The maximum number of attempts. Each gateway that reports the same flap causes at most one conflict.
const TRIES: usize = 8;

/// Writes the Events.
pub(super) struct Reporter {
    registry: Arc<Registry>,
    instance: String,
}

/// A flap, and the write that completed it.
struct Report<'a> {
    object: &'a Cached,
    uid: String,
    at: Timestamp,
    flap: &'a Flap,
}

impl Reporter {
    pub fn new(registry: Arc<Registry>, instance: String) -> Self {
        Self { registry, instance }
    }

    /// Reports a flap, unless another gateway has reported it.
    pub async fn report(&self, object: &Cached, at_ns: i64, flap: &Flap) {
        let Ok(decoded) = object.decode() else { return };
        let report = Report {
            object,
            uid: decoded.meta().uid.clone(),
            at: Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or_default(),
            flap,
        };
        match self.write(&report).await {
            Ok(false) => {}
            Ok(true) => {
                metrics::flapped(&object.kind.kind);
                let managers = flap.managers.join(SEPARATOR);
                warn!(kind = object.kind.kind, key = %object.key, field = flap.field, managers, "a field flaps");
            }
            Err(error) => warn!(key = %object.key, %error, "a flap could not be reported"),
        }
    }

    /// Creates or updates the Event. Returns false if another gateway reported the flap.
    async fn write(&self, report: &Report<'_>) -> Result<bool, ApiError> {
        let context = RequestContext::of_server().by(COMPONENT);
        let mut event = self.event(report);
        let target = Target::whole(kind(), &Key::of(&event.metadata));
        for _ in 0..TRIES {
            let object = event.clone_box();
            let written = match event.metadata.resource_version.as_str() {
                "" => self.registry.create(&context, &target, object).await,
                _ => self.registry.update(&context, &target, object).await,
            };
            match written {
                Ok(_) => return Ok(true),
                Err(error) if error.reason == Reason::AlreadyExists => {}
                Err(error) if error.reason == Reason::Conflict => {}
                Err(error) => return Err(error),
            }
            match self.stored(&target).await? {
                Some(stored) if report.is_counted_by(&stored) => return Ok(false),
                Some(stored) => event = report.count(stored),
                None => event = self.event(report),
            }
        }
        Ok(false)
    }

    async fn stored(&self, target: &Target) -> Result<Option<Event>, ApiError> {
        let (cache, key) = (self.registry.cache(), target.key());
        let stored = cache.get(target.kind, &key, AtLeast::Newest).await?;
        let stored = stored.map(|stored| stored.decode()).transpose()?;
        Ok(stored.and_then(|stored| stored.downcast_ref().cloned()))
    }

    fn event(&self, report: &Report<'_>) -> Event {
        let Report {
            object, flap, uid, ..
        } = report;
        let (kind, key) = (object.kind, &object.key);
        let annotations = [
            (FIELD.to_owned(), flap.field.clone()),
            (MANAGERS.to_owned(), flap.managers.join(SEPARATOR)),
            (REVISION.to_owned(), object.revision.to_string()),
        ];
        let [a, b] = &flap.managers;
        Event {
            metadata: ObjectMeta {
                namespace: event_namespace(&key.namespace).to_owned(),
                name: report.name(),
                annotations: annotations.into(),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                kind: kind.kind.clone(),
                api_version: kind.api_version(),
                namespace: key.namespace.clone(),
                name: key.name.clone(),
                uid: uid.clone(),
                ..ObjectReference::default()
            },
            reason: REASON.to_owned(),
            message: format!("{a} and {b} undo each other's writes of {}", flap.field),
            source: EventSource {
                component: COMPONENT.to_owned(),
                ..EventSource::default()
            },
            first_timestamp: report.at.into(),
            last_timestamp: report.at.into(),
            count: 1,
            r#type: "Warning".to_owned(),
            reporting_component: COMPONENT.to_owned(),
            reporting_instance: self.instance.clone(),
            ..Event::default()
        }
    }
}

impl Report<'_> {
    /// Returns the name of the Event, which all gateways derive alike.
    fn name(&self) -> String {
        let [a, b] = &self.flap.managers;
        let text = [&self.uid, &self.flap.field, a, b]
            .map(String::as_str)
            .join("\n");
        format!("{}.{:016x}", self.object.key.name, fnv(text.as_bytes()))
    }

    fn is_counted_by(&self, event: &Event) -> bool {
        let counted = event.metadata.annotations.get(REVISION);
        let counted = counted.and_then(|revision| revision.parse().ok());
        counted.is_some_and(|counted: Revision| counted >= self.object.revision)
    }

    fn count(&self, mut event: Event) -> Event {
        let revision = self.object.revision.to_string();
        let annotations = &mut event.metadata.annotations;
        annotations.insert(REVISION.to_owned(), revision);
        event.count = event.count.saturating_add(1);
        event.last_timestamp = Time::from(self.at);
        event
    }
}

fn kind() -> &'static Kind {
    kinds()
        .by_resource(Event::RESOURCE)
        .expect("its message is compiled in")
}

/// Returns the namespace of Events about objects in a namespace; `default` for cluster-wide objects.
pub(crate) fn event_namespace(namespace: &str) -> &str {
    match namespace {
        "" => "default",
        namespace => namespace,
    }
}

/// Returns the FNV-1a hash, which is the same on every machine and in every version.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
