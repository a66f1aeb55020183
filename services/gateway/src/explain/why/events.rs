//! The Kubernetes Events about an object, and the flaps among them.

use std::cmp::Reverse;

use setpoint_proto::ApiError;
use setpoint_proto::core::Event;
use setpoint_proto::setpoint::{EventSummary, Flap};

use super::objects::kind;
use super::reader::Reader;
use crate::explain::flaps;
use crate::registry::{AtLeast, Filter, Target};

/// The maximum number of Events in a response.
const EVENTS: usize = 20;

/// Returns the Events about an object, newest first, if the reader may list them; `uid` is empty if the object is not
/// known.
pub(super) async fn about(
    reader: Reader<'_>,
    target: &Target,
    uid: &str,
) -> Result<(Vec<EventSummary>, Vec<Flap>), ApiError> {
    let (mut events, mut flaps) = (Vec::new(), Vec::new());
    let (kind, namespace) = (kind::<Event>(), flaps::event_namespace(&target.namespace));
    if !reader.may_list(kind, namespace) {
        return Ok((events, flaps));
    }
    let (cache, filter) = (reader.registry.cache(), Filter::all(kind, namespace));
    for cached in cache.list(&filter, AtLeast::Any).await?.items {
        let object = cached.decode()?;
        let Some(event) = object.downcast_ref::<Event>() else {
            continue;
        };
        let involved = &event.involved_object;
        let same = match uid {
            "" => involved.kind == target.kind.kind && involved.name == target.name,
            uid => involved.uid == uid,
        };
        if same {
            flaps.extend(flap(event));
            events.push(summary(event));
        }
    }
    events.sort_by_key(|event| Reverse(event.last_ns));
    events.truncate(EVENTS);
    flaps.sort_by_key(|flap| Reverse(flap.last_ns));
    Ok((events, flaps))
}

fn summary(event: &Event) -> EventSummary {
    let component = match event.reporting_component.as_str() {
        "" => event.source.component.clone(),
        component => component.to_owned(),
    };
    EventSummary {
        r#type: event.r#type.clone(),
        reason: event.reason.clone(),
        message: event.message.clone(),
        count: event.count.max(1),
        last_ns: last_ns(event),
        component,
        instance: event.reporting_instance.clone(),
    }
}

fn flap(event: &Event) -> Option<Flap> {
    let annotation = |name| event.metadata.annotations.get(name);
    let managers = annotation(flaps::MANAGERS)?;
    Some(Flap {
        field: annotation(flaps::FIELD)?.clone(),
        managers: managers
            .split(flaps::SEPARATOR)
            .map(str::to_owned)
            .collect(),
        count: event.count,
        last_ns: last_ns(event),
    })
}

fn last_ns(event: &Event) -> i64 {
    let times = [
        event.last_timestamp.timestamp(),
        event.event_time.timestamp(),
    ];
    let newest = times.into_iter().flatten().max();
    newest.map_or(0, |time| {
        i64::try_from(time.as_nanosecond()).unwrap_or_default()
    })
}
