//! Deletes expired objects: Events some time after their last write, and the Leases of replicas and gateways that are
//! gone.
//!
//! Upstream, kube-apiserver lets etcd expire Events and deletes the Leases of its replicas itself, so these are no
//! controllers. The expiry of Jobs and of certificate signing requests belongs to their controllers, as upstream.
//!
//! The timestamps within an object are not trusted: any client can write an Event of the year 2999, and the clock of a
//! replica may be wrong. The age of an object is the time since its last write, as the gateways saw it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_codec::{Kind, kind_of};
use setpoint_model::{Key, Revision, replicas};
use setpoint_proto::ApiError;
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::Event;
use setpoint_proto::meta::{DeleteOptions, Preconditions};
use tokio::time::Instant;

use super::kubernetes_service;
use crate::registry::{AtLeast, Cached, Filter, Registry, RequestContext, Target};

/// The bounds of the interval between two runs. An object may outlive its TTL by one interval.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
const MAX_INTERVAL: Duration = Duration::from_secs(60);
/// Time for which a replica that did not shut down in order is still shown after its Lease has expired.
const REPLICA_RETENTION: Duration = Duration::from_secs(5 * 60);

/// Objects of one kind that expire.
struct ExpiringKind {
    kind: &'static Kind,
    /// Empty for all namespaces.
    namespace: &'static str,
    /// The time from its last write to the expiry of an object.
    ttl: Box<dyn Fn(&Cached) -> Duration + Send + Sync>,
    /// Whether the time of the write in the cause counts too. Then a restart of the gateway does not restart the TTL,
    /// but the clock of the gateway that made the write has to be right.
    trusts_cause: bool,
    last_writes: LastWrites,
}

/// The last write of each object, and when this gateway first saw it, by the monotonic clock.
#[derive(Default)]
struct LastWrites(HashMap<Key, (Revision, Instant)>);

fn expiring_kinds(event_ttl: Duration) -> [ExpiringKind; 3] {
    [
        ExpiringKind {
            kind: kind_of::<Event>(),
            namespace: "",
            ttl: Box::new(move |_| event_ttl),
            trusts_cause: true,
            last_writes: LastWrites::default(),
        },
        ExpiringKind {
            kind: kind_of::<Lease>(),
            namespace: replicas::NAMESPACE,
            ttl: Box::new(|lease| lease_duration(lease).saturating_add(REPLICA_RETENTION)),
            trusts_cause: false,
            last_writes: LastWrites::default(),
        },
        ExpiringKind {
            kind: kind_of::<Lease>(),
            namespace: kubernetes_service::LEASES,
            ttl: Box::new(
                |lease| match lease.labels().get(kubernetes_service::IDENTITY) {
                    Some(_) => lease_duration(lease),
                    None => Duration::MAX,
                },
            ),
            trusts_cause: false,
            last_writes: LastWrites::default(),
        },
    ]
}

/// Deletes expired objects until dropped.
pub(crate) async fn run(registry: &Registry, event_ttl: Duration) {
    let mut expiring = expiring_kinds(event_ttl);
    let mut ticks = tokio::time::interval((event_ttl / 10).clamp(MIN_INTERVAL, MAX_INTERVAL));
    loop {
        ticks.tick().await;
        for expiring in &mut expiring {
            let resource = expiring.kind.resource();
            match delete_expired(registry, expiring).await {
                Ok(0) => {}
                Ok(count) => tracing::debug!(resource, count, "expired objects deleted"),
                Err(error) => tracing::debug!(resource, %error, "listing objects failed"),
            }
        }
    }
}

/// Deletes the expired objects of a kind; returns their number.
async fn delete_expired(
    registry: &Registry,
    expiring: &mut ExpiringKind,
) -> Result<usize, ApiError> {
    let context = RequestContext::of_server().by("expiry");
    let all = Filter::all(expiring.kind, expiring.namespace);
    let listed = registry.cache().list(&all, AtLeast::Any).await?.items;
    expiring.last_writes.retain(&listed);
    let (now, clock) = (Instant::now(), Timestamp::now());
    let mut deleted = 0_usize;
    for cached in &listed {
        if !expiring.is_expired(cached, now, clock) {
            continue;
        }
        let target = Target::whole(expiring.kind, &cached.key);
        // An object that is written in the meantime is kept.
        let options = DeleteOptions {
            preconditions: Some(Preconditions {
                resource_version: Some(cached.revision.to_string()),
                ..Default::default()
            }),
            ..Default::default()
        };
        // Below admission: upstream, the store itself expires objects.
        let deleting = registry.delete_admitted(&context, &target, &options);
        let gone = deleting.await.is_ok();
        deleted = deleted.saturating_add(usize::from(gone));
    }
    Ok(deleted)
}

impl ExpiringKind {
    fn is_expired(&mut self, cached: &Cached, now: Instant, clock: Timestamp) -> bool {
        let mut age = self.last_writes.age(&cached.key, cached.revision, now);
        if self.trusts_cause
            && let Some(cause) = cached.cause()
        {
            age = age.max(since(cause.written_ns, clock));
        }
        age > (self.ttl)(cached)
    }
}

impl LastWrites {
    /// Returns the time since this gateway first saw the write.
    fn age(&mut self, key: &Key, revision: Revision, now: Instant) -> Duration {
        let seen = self.0.entry(key.clone()).or_insert((revision, now));
        if seen.0 != revision {
            *seen = (revision, now);
        }
        now.saturating_duration_since(seen.1)
    }

    /// Drops the entries of objects that no longer exist.
    fn retain(&mut self, existing: &[Arc<Cached>]) {
        let mut former = std::mem::take(&mut self.0);
        let kept = existing
            .iter()
            .filter_map(|cached| former.remove_entry(&cached.key));
        self.0 = kept.collect();
    }
}

/// Returns the time since a moment in nanoseconds since 1970; zero if the moment is in the future.
fn since(written_ns: i64, now: Timestamp) -> Duration {
    let written = Timestamp::from_nanosecond(i128::from(written_ns)).unwrap_or(Timestamp::MIN);
    Duration::try_from(now.duration_since(written)).unwrap_or_default()
}

/// Returns the `leaseDurationSeconds` of a Lease.
fn lease_duration(cached: &Cached) -> Duration {
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

    /// Checks F41: the age of a Lease does not depend on the clock of its holder.
    #[tokio::test(start_paused = true)]
    async fn age_is_the_time_since_the_last_write_was_first_seen() {
        let (mut writes, key) = (LastWrites::default(), Key::new(replicas::NAMESPACE, "a"));
        let at = Revision::from_raw;
        let mut age = |revision| writes.age(&key, at(revision), Instant::now()).as_secs();
        assert_eq!(age(1), 0);
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert_eq!(age(1), 300);
        assert_eq!(age(2), 0);
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(age(2), 10);
    }

    /// Checks F30.
    #[test]
    fn a_write_in_the_future_has_age_zero() {
        let now = Timestamp::from_second(100).unwrap();
        assert_eq!(since(90_000_000_000, now), Duration::from_secs(10));
        assert_eq!(since(i64::MAX, now), Duration::ZERO);
    }
}
