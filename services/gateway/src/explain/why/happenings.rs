//! The Events of an object, newest first; those of flapping fields are told apart.

use setpoint_proto::ApiError;
use setpoint_proto::core::Event;
use setpoint_proto::meta::{MicroTime, Time};
use setpoint_proto::setpoint::{Flap, Happening};

use super::facts::{Found, kind};
use crate::explain::flaps;
use crate::registry::{AtLeast, Filter, Registry, Target};

/// So many Events are told.
const EVENTS: usize = 20;

/// What was told of an object.
#[derive(Default)]
pub(super) struct Told {
    pub happenings: Vec<Happening>,
    pub flaps: Vec<Flap>,
}

pub(super) async fn of(
    registry: &Registry,
    target: &Target,
    found: &Found,
) -> Result<Told, ApiError> {
    let namespace = match target.namespace.as_str() {
        "" => "default",
        namespace => namespace,
    };
    let filter = Filter::all(kind::<Event>(), namespace);
    let mut told = Told::default();
    for cached in registry.cache().list(&filter, AtLeast::Any).await?.items {
        let object = cached.decode()?;
        let Some(event) = object.downcast_ref::<Event>() else {
            continue;
        };
        let about = &event.involved_object;
        let same = match found.uid.as_str() {
            "" => about.kind == target.kind.kind && about.name == target.name,
            uid => about.uid == uid,
        };
        if same {
            told.flaps.extend(flap(event));
            told.happenings.push(happening(event));
        }
    }
    told.happenings
        .sort_by_key(|one| std::cmp::Reverse(one.last_ns));
    told.happenings.truncate(EVENTS);
    told.flaps.sort_by_key(|one| std::cmp::Reverse(one.last_ns));
    Ok(told)
}

fn happening(event: &Event) -> Happening {
    let component = match event.reporting_component.as_str() {
        "" => event.source.component.clone(),
        component => component.to_owned(),
    };
    Happening {
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
    let coarse = |time: &Time| time.timestamp();
    let fine = |time: &MicroTime| time.timestamp();
    let times = [coarse(&event.last_timestamp), fine(&event.event_time)];
    let newest = times.into_iter().flatten().max();
    newest.map_or(0, |time| {
        i64::try_from(time.as_nanosecond()).unwrap_or_default()
    })
}
