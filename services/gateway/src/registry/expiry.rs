//! Forgets what nobody asks for any more: Events a while after they were last told, and replicas that are long gone.

use std::time::Duration;

use jiff::Timestamp;
use setpoint_codec::{Object, kinds};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::Event;
use setpoint_proto::meta::{DeleteOptions, Preconditions};
use setpoint_proto::{ApiError, Resource};

use super::{AtLeast, Cached, Call, Filter, Registry, Target};

/// Between two looks at most, and at least. Anything may outstay its time by so much.
const SELDOM: Duration = Duration::from_secs(60);
const OFTEN: Duration = Duration::from_millis(100);
/// Replicas that did not take leave are shown for a while: someone may wonder what became of them.
const GONE: Duration = Duration::from_secs(5 * 60);
/// Where replicas say that they are there.
const REPLICAS: &str = "setpoint-replicas";

/// Objects that end by themselves.
struct Mortal {
    resource: &'static str,
    /// Empty for all.
    namespace: &'static str,
    kept: Duration,
    /// Since when it is of no more use.
    ended: fn(&dyn Object) -> Option<Timestamp>,
}

fn mortals(event_ttl: Duration) -> [Mortal; 2] {
    [
        Mortal {
            resource: Event::RESOURCE,
            namespace: "",
            kept: event_ttl,
            ended: |object| object.downcast_ref().and_then(last_told),
        },
        Mortal {
            resource: Lease::RESOURCE,
            namespace: REPLICAS,
            kept: GONE,
            ended: |object| object.downcast_ref().and_then(expired),
        },
    ]
}

/// Looks for what is old, for ever.
pub(super) async fn run(registry: &Registry, event_ttl: Duration) {
    let mortals = mortals(event_ttl);
    let mut ticks = tokio::time::interval((event_ttl / 10).clamp(OFTEN, SELDOM));
    loop {
        ticks.tick().await;
        for mortal in &mortals {
            let resource = mortal.resource;
            match forget(registry, mortal, Timestamp::now()).await {
                Ok(0) => {}
                Ok(count) => tracing::debug!(resource, count, "forgotten"),
                Err(error) => tracing::debug!(resource, %error, "not forgotten yet"),
            }
        }
    }
}

async fn forget(registry: &Registry, mortal: &Mortal, now: Timestamp) -> Result<usize, ApiError> {
    let kind = kinds()
        .by_resource(mortal.resource)
        .expect("its message is compiled in");
    let call = Call::default().by("expiry");
    let all = Filter::all(kind, mortal.namespace);
    let listed = registry.cache.list(&all, AtLeast::Any).await?;
    let old = listed.items.iter().filter(|item| mortal.is_old(item, now));
    let mut forgotten = 0;
    for cached in old {
        let target = Target::whole(kind, &cached.key);
        // One that shows itself again meanwhile stays.
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

impl Mortal {
    fn is_old(&self, cached: &Cached, now: Timestamp) -> bool {
        let Ok(object) = cached.decode() else {
            return false;
        };
        let ended = (self.ended)(&*object);
        ended.is_some_and(|ended| {
            now.duration_since(ended).unsigned_abs() > self.kept && ended < now
        })
    }
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

fn expired(lease: &Lease) -> Option<Timestamp> {
    let seconds = lease.spec.lease_duration_seconds.unwrap_or_default();
    let lasts = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    lease.spec.renew_time?.timestamp()?.checked_add(lasts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn an_event_is_as_old_as_its_last_telling() {
        let mut event = Event::default();
        assert_eq!(last_told(&event), None);
        event.metadata.creation_timestamp = at(10).into();
        event.last_timestamp = at(20).into();
        assert_eq!(last_told(&event), Some(at(20)));
        event.event_time = at(30).into();
        assert_eq!(last_told(&event), Some(at(30)));
    }

    #[test]
    fn a_lease_ends_its_duration_after_its_last_renewal() {
        let mut lease = Lease::default();
        assert_eq!(expired(&lease), None, "it was never held");
        lease.spec.renew_time = Some(at(10).into());
        lease.spec.lease_duration_seconds = Some(40);
        assert_eq!(expired(&lease), Some(at(50)));
    }
}
