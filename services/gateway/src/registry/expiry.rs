//! Forgets Events: they tell what happened, and an hour later nobody asks.

use std::time::Duration;

use jiff::Timestamp;
use setpoint_codec::{Kind, kinds};
use setpoint_proto::core::Event;
use setpoint_proto::meta::{DeleteOptions, Preconditions};
use setpoint_proto::{ApiError, Resource as _};

use super::{AtLeast, Cached, Call, Filter, Registry, Target};

/// As long as Kubernetes keeps them.
const KEPT: Duration = Duration::from_secs(60 * 60);
/// Between two looks. An Event may outstay its hour by so much.
const EVERY: Duration = Duration::from_secs(60);

/// Looks for old Events, for ever.
pub(super) async fn run(registry: &Registry) {
    let kind = kinds()
        .by_resource(Event::RESOURCE)
        .expect("its message is compiled in");
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        match forget(registry, kind, Timestamp::now()).await {
            Ok(0) => {}
            Ok(events) => tracing::debug!(events, "forgotten"),
            Err(error) => tracing::debug!(%error, "old Events could not be forgotten"),
        }
    }
}

async fn forget(
    registry: &Registry,
    kind: &'static Kind,
    now: Timestamp,
) -> Result<usize, ApiError> {
    let call = Call::default().by("event-expiry");
    let events = registry
        .cache
        .list(&Filter::all(kind, ""), AtLeast::Any)
        .await?;
    let mut forgotten = 0;
    for cached in events.items.iter().filter(|cached| is_old(cached, now)) {
        let target = Target::whole(kind, &cached.key);
        // One that is told again meanwhile stays.
        let options = DeleteOptions {
            preconditions: Some(Preconditions {
                resource_version: Some(cached.revision.to_string()),
                ..Default::default()
            }),
            ..Default::default()
        };
        forgotten += usize::from(registry.delete(&call, &target, &options).await.is_ok());
    }
    Ok(forgotten)
}

fn is_old(cached: &Cached, now: Timestamp) -> bool {
    let Ok(object) = cached.decode() else {
        return false;
    };
    let told = object.downcast_ref::<Event>().and_then(last_told);
    told.is_some_and(|told| now.duration_since(told).unsigned_abs() > KEPT && told < now)
}

fn last_told(event: &Event) -> Option<Timestamp> {
    let series = event
        .series
        .as_ref()
        .and_then(|series| series.last_observed_time.timestamp());
    let times = [
        event.last_timestamp.timestamp(),
        event.event_time.timestamp(),
        event.metadata.creation_timestamp.timestamp(),
        series,
    ];
    times.into_iter().flatten().max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_as_old_as_its_last_telling() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut event = Event::default();
        assert_eq!(last_told(&event), None);
        event.metadata.creation_timestamp = at(10).into();
        event.last_timestamp = at(20).into();
        assert_eq!(last_told(&event), Some(at(20)));
        event.event_time = at(30).into();
        assert_eq!(last_told(&event), Some(at(30)));
    }
}
