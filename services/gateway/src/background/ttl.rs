//! Forgets what nobody asks for any more: Events a while after their last write, and replicas that are long gone.
//!
//! What an object says of itself is no evidence: anyone may write an Event of the year 2999, and a replica's clock may be
//! wrong. So age is counted from the last write, as the gateways saw it.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_codec::kinds;
use setpoint_model::{Key, Revision, replicas};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::Event;
use setpoint_proto::meta::{DeleteOptions, Preconditions};
use setpoint_proto::{ApiError, Resource};
use tokio::time::Instant;

use crate::registry::{AtLeast, Cached, Filter, Registry, RequestContext, Target};

/// Between two looks at most, and at least. Anything may outstay its time by so much.
const SELDOM: Duration = Duration::from_secs(60);
const OFTEN: Duration = Duration::from_millis(100);
/// Replicas that did not take leave are shown for a while: someone may wonder what became of them.
const GONE: Duration = Duration::from_secs(5 * 60);

/// Objects of one kind that end by themselves.
struct Mortal {
    resource: &'static str,
    /// Empty for all.
    namespace: &'static str,
    /// How long after its last write it ends.
    ttl: Box<dyn Fn(&Cached) -> Duration + Send + Sync>,
    /// Does the time of that write count, as the gateway that made it has noted it? A gateway that starts need not begin to
    /// count anew then, but its clock has to be right.
    noted: bool,
    seen: Seen,
}

/// The last write of each object, and when this gateway first saw it. Only a monotonic clock counts here.
#[derive(Default)]
struct Seen(HashMap<Key, (Revision, Instant)>);

fn mortals(event_ttl: Duration) -> [Mortal; 2] {
    [
        Mortal {
            resource: Event::RESOURCE,
            namespace: "",
            ttl: Box::new(move |_| event_ttl),
            noted: true,
            seen: Seen::default(),
        },
        Mortal {
            resource: Lease::RESOURCE,
            namespace: replicas::NAMESPACE,
            ttl: Box::new(|lease| lasts(lease).saturating_add(GONE)),
            noted: false,
            seen: Seen::default(),
        },
    ]
}

/// Looks for what is old, for ever.
pub(crate) async fn run(registry: &Registry, event_ttl: Duration) {
    let mut mortals = mortals(event_ttl);
    let mut ticks = tokio::time::interval((event_ttl / 10).clamp(OFTEN, SELDOM));
    loop {
        ticks.tick().await;
        for mortal in &mut mortals {
            let resource = mortal.resource;
            match forget(registry, mortal).await {
                Ok(0) => {}
                Ok(count) => tracing::debug!(resource, count, "forgotten"),
                Err(error) => tracing::debug!(resource, %error, "not forgotten yet"),
            }
        }
    }
}

async fn forget(registry: &Registry, mortal: &mut Mortal) -> Result<usize, ApiError> {
    let kind = kinds()
        .by_resource(mortal.resource)
        .expect("its message is compiled in");
    let context = RequestContext::default().by("expiry");
    let all = Filter::all(kind, mortal.namespace);
    let listed = registry.cache().list(&all, AtLeast::Any).await?.items;
    mortal.seen.keep(listed.iter().map(|item| &**item));
    let (now, clock) = (Instant::now(), Timestamp::now());
    let mut forgotten = 0_usize;
    for cached in &listed {
        if !mortal.is_old(cached, now, clock) {
            continue;
        }
        let target = Target::whole(kind, &cached.key);
        // One that shows itself again meanwhile stays.
        let options = DeleteOptions {
            preconditions: Some(Preconditions {
                resource_version: Some(cached.revision.to_string()),
                ..Default::default()
            }),
            ..Default::default()
        };
        let gone = registry.delete(&context, &target, &options).await.is_ok();
        forgotten = forgotten.saturating_add(usize::from(gone));
    }
    Ok(forgotten)
}

impl Mortal {
    fn is_old(&mut self, cached: &Cached, now: Instant, clock: Timestamp) -> bool {
        let mut age = self.seen.age(&cached.key, cached.revision, now);
        if self.noted {
            let written = cached.cause().map(|cause| cause.written_ns);
            age = age.max(written.map_or(Duration::ZERO, |written| since(written, clock)));
        }
        age > (self.ttl)(cached)
    }
}

impl Seen {
    /// Returns how long ago this gateway first saw the write.
    fn age(&mut self, key: &Key, revision: Revision, now: Instant) -> Duration {
        let seen = self.0.entry(key.clone()).or_insert((revision, now));
        if seen.0 != revision {
            *seen = (revision, now);
        }
        now.saturating_duration_since(seen.1)
    }

    /// Forgets the objects that are gone.
    fn keep<'a>(&mut self, there: impl Iterator<Item = &'a Cached>) {
        let mut former = std::mem::take(&mut self.0);
        let kept = there.filter_map(|cached| former.remove_entry(&cached.key));
        self.0 = kept.collect();
    }
}

/// Returns the time since a moment in nanoseconds since 1970; zero if it is still to come.
fn since(written_ns: i64, now: Timestamp) -> Duration {
    let written = Timestamp::from_nanosecond(i128::from(written_ns)).unwrap_or(Timestamp::MIN);
    Duration::try_from(now.duration_since(written)).unwrap_or_default()
}

/// Returns how long a Lease promises to last after a renewal.
fn lasts(cached: &Cached) -> Duration {
    let lease = cached.decode().ok();
    let lease = lease
        .as_ref()
        .and_then(|lease| lease.downcast_ref::<Lease>());
    let seconds = lease.and_then(|lease| lease.spec.lease_duration_seconds);
    Duration::from_secs(u64::try_from(seconds.unwrap_or_default()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks F41: however wrong a clock is, a Lease that changes is alive.
    #[tokio::test(start_paused = true)]
    async fn age_is_counted_from_the_last_change_that_was_seen() {
        let (mut seen, key) = (Seen::default(), Key::new(replicas::NAMESPACE, "a"));
        let at = Revision::from_raw;
        let mut age = |revision| seen.age(&key, at(revision), Instant::now()).as_secs();
        assert_eq!(age(1), 0);
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(age(1), 300);
        assert_eq!(age(2), 0);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(age(2), 10);
    }

    /// Checks F30.
    #[test]
    fn a_write_that_is_still_to_come_is_not_old() {
        let now = Timestamp::from_second(100).unwrap();
        assert_eq!(since(90_000_000_000, now), Duration::from_secs(10));
        assert_eq!(since(i64::MAX, now), Duration::ZERO);
    }
}
