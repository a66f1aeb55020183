//! The election record in a Lease.

use std::time::Duration;

use jiff::Timestamp;
use setpoint_model::Revision;
use setpoint_proto::coordination::{Lease, LeaseSpec};
use setpoint_proto::meta::ObjectMeta;
use tokio::time::Instant;

/// A Lease and the local time at which its last change was observed. The times inside it are from other clocks and are
/// not compared.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) lease: Option<Lease>,
    revision: Revision,
    at: Instant,
}

impl Seen {
    pub(super) fn now(lease: Option<Lease>, revision: Revision) -> Self {
        let at = Instant::now();
        Self {
            lease,
            revision,
            at,
        }
    }

    /// Returns whether it is of an earlier revision.
    pub(super) fn is_before(&self, revision: Revision) -> bool {
        self.revision < revision
    }

    /// Returns the time from which the Lease is free.
    pub(super) fn free_at(&self) -> Instant {
        match &self.lease {
            Some(lease) if !holder(lease).is_empty() => self.at + duration(lease),
            _ => self.at,
        }
    }

    /// Returns whether another holder has begun a term since `identity` began its own.
    pub(super) fn is_of_another(&self, identity: &str, since: Revision) -> bool {
        let holder = self.lease.as_ref().map_or("", holder);
        self.revision > since && !holder.is_empty() && holder != identity
    }
}

pub(super) fn holder(lease: &Lease) -> &str {
    lease.spec.holder_identity.as_deref().unwrap_or_default()
}

fn duration(lease: &Lease) -> Duration {
    let seconds = lease.spec.lease_duration_seconds.unwrap_or_default();
    Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
}

/// Returns the Lease held by `identity`. It keeps the resourceVersion, so that only one of several candidates succeeds.
pub(super) fn taken(
    former: Option<&Lease>,
    meta: ObjectMeta,
    identity: &str,
    seconds: i32,
) -> Lease {
    let now = Timestamp::now();
    // As in upstream. The gateway counts the term of the fence.
    let transitions = former.map(|lease| lease.spec.lease_transitions.unwrap_or_default());
    let transitions = transitions.map(|count| count.saturating_add(1));
    Lease {
        metadata: former.map_or(meta, |lease| lease.metadata.clone()),
        spec: LeaseSpec {
            holder_identity: Some(identity.to_owned()),
            lease_duration_seconds: Some(seconds),
            acquire_time: Some(now.into()),
            renew_time: Some(now.into()),
            lease_transitions: Some(transitions.unwrap_or_default()),
            ..LeaseSpec::default()
        },
    }
}

/// Returns the Lease, renewed.
pub(super) fn renewed(lease: &Lease) -> Lease {
    let mut lease = lease.clone();
    lease.spec.renew_time = Some(Timestamp::now().into());
    lease
}

/// Returns the Lease, released.
pub(super) fn released(lease: &Lease) -> Lease {
    let mut lease = renewed(lease);
    lease.spec.holder_identity = Some(String::new());
    lease.spec.lease_duration_seconds = Some(1);
    lease
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(holder: &str) -> Lease {
        taken(None, ObjectMeta::default(), holder, 15)
    }

    fn seen(lease: Option<Lease>, revision: u64) -> Seen {
        Seen::now(lease, Revision::from_raw(revision))
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_free_at_once_unless_it_is_held() {
        let now = Instant::now();
        let free_at = |lease| seen(lease, 1).free_at() - now;
        assert_eq!(free_at(Some(held("a"))), Duration::from_secs(15));
        assert_eq!(free_at(Some(released(&held("a")))), Duration::ZERO);
        assert_eq!(free_at(Some(Lease::default())), Duration::ZERO);
        assert_eq!(free_at(None), Duration::ZERO);
    }

    #[tokio::test]
    async fn another_has_begun_a_term_if_it_holds_the_lease_since_a_later_revision() {
        let since = Revision::from_raw(5);
        for (holder, revision, of_another) in [
            ("b", 6, true),
            ("b", 5, false),
            ("b", 4, false),
            ("a", 6, false),
            ("", 6, false),
        ] {
            let seen = seen(Some(held(holder)), revision);
            assert_eq!(
                seen.is_of_another("a", since),
                of_another,
                "{holder:?} {revision}"
            );
        }
        assert!(!seen(None, 6).is_of_another("a", since));
    }

    #[test]
    fn acquiring_a_lease_begins_a_term_of_the_new_holder() {
        let mut former = held("a");
        assert_eq!(former.spec.lease_transitions, Some(0));
        former.metadata.resource_version = "7".to_owned();
        let lease = taken(Some(&former), ObjectMeta::default(), "b", 20);
        assert_eq!(lease.metadata.resource_version, "7");
        assert_eq!(holder(&lease), "b");
        assert_eq!(lease.spec.lease_duration_seconds, Some(20));
        assert_eq!(lease.spec.lease_transitions, Some(1));
        assert!(lease.spec.acquire_time.is_some());
        assert_eq!(lease.spec.acquire_time, lease.spec.renew_time);
    }

    #[test]
    fn a_released_lease_keeps_its_term_and_has_no_holder() {
        let lease = held("a");
        let released = released(&lease);
        assert_eq!(holder(&released), "");
        assert_eq!(released.spec.lease_duration_seconds, Some(1));
        assert_eq!(released.spec.acquire_time, lease.spec.acquire_time);
    }
}
