//! What a Lease says, and what to write into it.

use std::time::Duration;

use jiff::Timestamp;
use setpoint_model::Revision;
use setpoint_proto::coordination::{Lease, LeaseSpec};
use setpoint_proto::meta::ObjectMeta;
use tokio::time::Instant;

/// A Lease, and when this process saw it become what it is. The times inside it are another clock's, and not judged.
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

    /// From when on it may be taken.
    pub(super) fn free_at(&self) -> Instant {
        match &self.lease {
            Some(lease) if !holder(lease).is_empty() => self.at + duration(lease),
            _ => self.at,
        }
    }

    /// Has another holder begun a term since `identity` began its own?
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

/// The Lease, taken by `identity`. It keeps the resourceVersion, so that only one of several candidates succeeds.
pub(super) fn taken(
    former: Option<&Lease>,
    meta: ObjectMeta,
    identity: &str,
    seconds: i32,
) -> Lease {
    let now = Timestamp::now();
    // For people, as upstream counts it: the fence's term is the gateway's own.
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

/// The same Lease with a sign of life.
pub(super) fn renewed(lease: &Lease) -> Lease {
    let mut lease = lease.clone();
    lease.spec.renew_time = Some(Timestamp::now().into());
    lease
}

/// The same Lease, held by nobody.
pub(super) fn released(lease: &Lease) -> Lease {
    let mut lease = renewed(lease);
    lease.spec.holder_identity = Some(String::new());
    lease.spec.lease_duration_seconds = Some(1);
    lease
}
