//! Tells of a flap: one Event for each field and pair of managers, however many gateways have seen it.

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_codec::{Object as _, kinds};
use setpoint_model::Key;
use setpoint_proto::core::{Event, EventSource, ObjectReference};
use setpoint_proto::meta::{ObjectMeta, Time};
use setpoint_proto::{ApiError, Reason, Resource as _};
use tracing::warn;

use super::trail::Flap;
use crate::metrics;
use crate::registry::{AtLeast, Cached, Registry, RequestContext, Target};

/// The Event's annotation that names the field.
pub(crate) const FIELD: &str = "setpoint.dev/field";
/// The Event's annotation that names both managers.
pub(crate) const MANAGERS: &str = "setpoint.dev/managers";
/// What stands between them.
pub(crate) const SEPARATOR: &str = ",";
/// The Event's annotation that says up to which write of the object it counts.
const REVISION: &str = "setpoint.dev/revision";

const REASON: &str = "FieldFlapping";
const COMPONENT: &str = "gateway";
/// As many gateways may be at it at once.
const TRIES: usize = 8;

/// Writes the Events.
pub(super) struct Teller {
    registry: Arc<Registry>,
    instance: String,
}

/// One flap, and the write that completed it.
struct Case<'a> {
    object: &'a Cached,
    uid: String,
    at: Timestamp,
    flap: &'a Flap,
}

impl Teller {
    pub fn new(registry: Arc<Registry>, instance: String) -> Self {
        Self { registry, instance }
    }

    /// Tells of it, unless another gateway has.
    pub async fn tell(&self, object: &Cached, at_ns: i64, flap: &Flap) {
        let Ok(decoded) = object.decode() else { return };
        let case = Case {
            object,
            uid: decoded.meta().uid.clone(),
            at: Timestamp::from_nanosecond(i128::from(at_ns)).unwrap_or_default(),
            flap,
        };
        match self.record(&case).await {
            Ok(false) => {}
            Ok(true) => {
                metrics::flapped(&object.kind.kind);
                let managers = flap.managers.join(SEPARATOR);
                warn!(kind = object.kind.kind, key = %object.key, field = flap.field, managers, "a field flaps");
            }
            Err(error) => warn!(key = %object.key, %error, "a flap could not be told"),
        }
    }

    /// Was it this gateway that told?
    async fn record(&self, case: &Case<'_>) -> Result<bool, ApiError> {
        let context = RequestContext::default().by(COMPONENT);
        let mut event = self.event(case);
        let target = target(&event);
        for _ in 0..TRIES {
            let written = match event.metadata.resource_version.as_str() {
                "" => {
                    self.registry
                        .create(&context, &target, event.clone_box())
                        .await
                }
                _ => {
                    self.registry
                        .update(&context, &target, event.clone_box())
                        .await
                }
            };
            match written {
                Ok(_) => return Ok(true),
                Err(error) if error.reason == Reason::AlreadyExists => {}
                Err(error) if error.reason == Reason::Conflict => {}
                Err(error) => return Err(error),
            }
            match self.told(&target).await? {
                Some(told) if case.is_told_by(&told) => return Ok(false),
                Some(told) => event = case.counted_on(told),
                None => event = self.event(case),
            }
        }
        Ok(false)
    }

    /// What has been told so far.
    async fn told(&self, target: &Target) -> Result<Option<Event>, ApiError> {
        let (cache, key) = (self.registry.cache(), target.key());
        let told = cache.get(target.kind, &key, AtLeast::Newest).await?;
        let told = told.map(|told| told.decode()).transpose()?;
        Ok(told.and_then(|told| told.downcast_ref().cloned()))
    }

    fn event(&self, case: &Case<'_>) -> Event {
        let Case {
            object, flap, uid, ..
        } = case;
        let (kind, key) = (object.kind, &object.key);
        let annotations = [
            (FIELD.to_owned(), flap.field.clone()),
            (MANAGERS.to_owned(), flap.managers.join(SEPARATOR)),
            (REVISION.to_owned(), object.revision.to_string()),
        ];
        let [a, b] = &flap.managers;
        Event {
            metadata: ObjectMeta {
                namespace: namespace(key).to_owned(),
                name: case.name(),
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
            first_timestamp: case.at.into(),
            last_timestamp: case.at.into(),
            count: 1,
            r#type: "Warning".to_owned(),
            reporting_component: COMPONENT.to_owned(),
            reporting_instance: self.instance.clone(),
            ..Event::default()
        }
    }
}

impl Case<'_> {
    /// The same at every gateway.
    fn name(&self) -> String {
        let [a, b] = &self.flap.managers;
        let text = [&self.uid, &self.flap.field, a, b]
            .map(String::as_str)
            .join("\n");
        format!("{}.{:016x}", self.object.key.name, fnv(text.as_bytes()))
    }

    fn is_told_by(&self, event: &Event) -> bool {
        let told = event.metadata.annotations.get(REVISION);
        let told = told.and_then(|told| told.parse().ok());
        told.is_some_and(|told: setpoint_model::Revision| told >= self.object.revision)
    }

    fn counted_on(&self, mut told: Event) -> Event {
        let revision = self.object.revision.to_string();
        told.metadata
            .annotations
            .insert(REVISION.to_owned(), revision);
        told.count = told.count.saturating_add(1);
        told.last_timestamp = Time::from(self.at);
        told
    }
}

fn target(event: &Event) -> Target {
    let kind = kinds()
        .by_resource(Event::RESOURCE)
        .expect("its message is compiled in");
    Target {
        kind,
        namespace: event.metadata.namespace.clone(),
        name: event.metadata.name.clone(),
        subresource: crate::registry::Subresource::None,
    }
}

/// Events about what lives in no namespace are in this one.
fn namespace(key: &Key) -> &str {
    match key.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    }
}

/// FNV-1a: the same on every machine and in every version.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
