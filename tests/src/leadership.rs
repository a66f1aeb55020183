//! The leadership terms of a service and its writes in each, reconstructed from etcd's history alone.

use std::time::{Duration, Instant};

use prost::Message as _;
use setpoint_proto::coordination::Lease;

use crate::Entry;

/// A term of a service's leader.
#[derive(Clone, Debug)]
pub struct LeadershipTerm {
    /// The holder, as its Lease names it.
    pub holder: String,
    /// The number of the term, counted by the gateway.
    pub term: u64,
    /// The revision of the Lease's first write in this term.
    pub first_revision: i64,
    /// When the watch delivered that write.
    pub began: Instant,
    /// When the watch delivered the last renewal or the release of the Lease.
    pub last_sign: Instant,
    /// When the gateway made that write, in nanoseconds since 1970.
    pub last_sign_ns: i64,
    /// Whether the Lease was released.
    pub released: bool,
    /// The lease duration: no other replica may lead for this time after the last renewal.
    pub lease_duration: Duration,
    /// When the watch delivered the first and the last write of the leader.
    pub writes: Option<(Instant, Instant)>,
}

/// The gaps between one leader and the next.
#[derive(Clone, Copy, Debug)]
pub struct Handover {
    /// From the last renewal or the release by the old leader to the election of the new one.
    pub leaderless: Duration,
    /// From the last accepted write of the old leader to the first one of the new.
    pub writeless: Option<Duration>,
}

impl LeadershipTerm {
    /// Returns all terms of a service, in order.
    ///
    /// # Panics
    /// If the history violates an invariant: a term begins before the previous one has expired or was released, term
    /// numbers are not consecutive, or a write was accepted under another term than the current one.
    pub fn all(history: &[Entry], service: &str) -> Vec<Self> {
        let lease = format!("/registry/leases/setpoint-system/{service}");
        let mut terms: Vec<Self> = Vec::new();
        for entry in history {
            if entry.key == lease {
                apply(&mut terms, entry);
            } else if is_fenced_write(entry, service) {
                let term = terms.last_mut();
                let term =
                    term.unwrap_or_else(|| panic!("a write before the first term: {entry:?}"));
                term.wrote(entry);
            }
        }
        terms
    }

    /// Returns the gaps between this term and the `next`.
    pub fn handover(&self, next: &Self) -> Handover {
        let writes = self.writes.zip(next.writes);
        Handover {
            leaderless: next.began - self.last_sign,
            writeless: writes.map(|((_, last), (first, _))| first - last),
        }
    }

    fn wrote(&mut self, entry: &Entry) {
        assert_eq!(
            entry.cause.term, self.term,
            "{} was written at {} by another replica than {}, the leader since {}",
            entry.key, entry.revision, self.holder, self.first_revision
        );
        let (first, _) = self.writes.unwrap_or((entry.seen, entry.seen));
        self.writes = Some((first, entry.seen));
    }

    fn begin(entry: &Entry, lease: &Lease, term: u64) -> Self {
        let seconds = lease.spec.lease_duration_seconds.unwrap_or_default();
        Self {
            holder: lease.spec.holder_identity.clone().unwrap_or_default(),
            term,
            first_revision: entry.revision,
            began: entry.seen,
            last_sign: entry.seen,
            last_sign_ns: entry.cause.written_ns,
            released: false,
            lease_duration: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
            writes: None,
        }
    }
}

/// Tolerance for adjustments of the gateways' clocks.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(250);

fn apply(terms: &mut Vec<LeadershipTerm>, entry: &Entry) {
    let object = entry.object.clone().expect("the Lease is never deleted");
    let lease = Lease::decode(object).expect("it is a Lease");
    let holder = lease.spec.holder_identity.clone().unwrap_or_default();
    let number = entry.cause.lease_term.expect("it has been held");
    match terms.last_mut() {
        Some(last) if last.term == number => {
            assert!(holder == last.holder || holder.is_empty(), "{lease:?}");
            last.released = holder.is_empty();
            last.last_sign = entry.seen;
            last.last_sign_ns = entry.cause.written_ns;
        }
        Some(last) => {
            assert_eq!(number, last.term + 1, "terms follow one another");
            // The gateway's times are compared, because the watch may deliver one write late and the next in time.
            let silent = entry.cause.written_ns - last.last_sign_ns;
            let silent = Duration::from_nanos(silent.try_into().unwrap_or_default());
            assert!(
                last.released || silent + CLOCK_TOLERANCE >= last.lease_duration,
                "{holder} displaced {} after {silent:?}",
                last.holder
            );
            terms.push(LeadershipTerm::begin(entry, &lease, number));
        }
        None => terms.push(LeadershipTerm::begin(entry, &lease, number)),
    }
}

/// Whether an entry is a fenced write of the service. Leases, their namespaces and Events are written without a fence.
fn is_fenced_write(entry: &Entry, service: &str) -> bool {
    const UNFENCED: [&str; 3] = ["events/", "leases/", "namespaces/"];
    let fenced = |key: &str| UNFENCED.iter().all(|unfenced| !key.starts_with(unfenced));
    entry.key.strip_prefix("/registry/").is_some_and(fenced) && entry.cause.writer == service
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a history of two terms, the second after `silence`, with a last write under the given term.
    fn history(written_under: u64, silence: Duration) -> Vec<Entry> {
        let start = Instant::now();
        let lease = |revision, after: Duration, holder: &str, term| {
            let mut lease = Lease::default();
            lease.spec.holder_identity = Some(holder.to_owned());
            lease.spec.lease_duration_seconds = Some(2);
            let mut entry = entry(
                revision,
                start + after,
                "leases/setpoint-system/demo",
                lease.encode_to_vec(),
            );
            entry.cause.lease_term = Some(term);
            entry.cause.written_ns = after.as_nanos().try_into().expect("it is short");
            entry
        };
        let mut late = entry(4, start + silence, "pods/default/late", Vec::new());
        late.cause.term = written_under;
        let (zero, second) = (Duration::ZERO, Duration::from_secs(1));
        vec![
            lease(1, zero, "a", 0),
            lease(2, second, "a", 0),
            lease(3, second + silence, "b", 1),
            late,
        ]
    }

    fn entry(revision: i64, seen: Instant, key: &str, object: Vec<u8>) -> Entry {
        Entry {
            revision,
            seen,
            key: format!("/registry/{key}"),
            object: Some(object.into()),
            created: true,
            cause: setpoint_proto::Cause {
                writer: "demo".to_owned(),
                ..Default::default()
            },
            value: bytes::Bytes::new(),
        }
    }

    #[test]
    fn a_valid_history_has_an_entry_per_term() {
        let terms = LeadershipTerm::all(&history(1, Duration::from_secs(3)), "demo");
        assert_eq!(terms.len(), 2);
        let handover = terms[0].handover(&terms[1]);
        assert_eq!(handover.leaderless, Duration::from_secs(3));
        assert!(handover.writeless.is_none(), "the first one wrote nothing");
    }

    #[test]
    #[should_panic(expected = "by another replica than b")]
    fn an_accepted_late_write_panics() {
        LeadershipTerm::all(&history(0, Duration::from_secs(3)), "demo");
    }

    #[test]
    #[should_panic(expected = "b displaced a")]
    fn a_term_that_begins_before_the_lease_expires_panics() {
        LeadershipTerm::all(&history(1, Duration::from_secs(1)), "demo");
    }
}
