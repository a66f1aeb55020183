//! Who led when, and what was written meanwhile: read from etcd's history alone.

use std::time::{Duration, Instant};

use prost::Message as _;
use setpoint_proto::coordination::Lease;

use crate::Entry;

/// One term of a service's leader.
#[derive(Clone, Debug)]
pub struct Reign {
    /// The holder, as its Lease names it.
    pub holder: String,
    /// As the gateway counts them, beside the Lease.
    pub term: u64,
    /// The revision with which it began.
    pub since: i64,
    /// When that was heard.
    pub began: Instant,
    /// When that was heard: the Lease was last renewed, or given back.
    pub last_sign: Instant,
    /// When the gateway took that in, in nanoseconds since 1970.
    pub last_sign_ns: i64,
    /// Was it given back?
    pub released: bool,
    /// What it had promised: so long after its last sign of life nobody else leads.
    pub lasts: Duration,
    /// When its first and its last write were heard, if it wrote.
    pub writes: Option<(Instant, Instant)>,
}

/// From one leader to the next.
#[derive(Clone, Copy, Debug)]
pub struct Handover {
    /// From the last sign of life of the old leader to the election of the new one.
    pub leaderless: Duration,
    /// From the last accepted write of the old leader to the first one of the new.
    pub writeless: Option<Duration>,
}

impl Reign {
    /// All terms of a service, first to last.
    ///
    /// # Panics
    /// When the history shows what must never be: a term that begins while the one before it still lasts, a term that does
    /// not follow the one before it, or an accepted write of another term than the one that stood.
    pub fn all(history: &[Entry], service: &str) -> Vec<Self> {
        let lease = format!("/registry/leases/setpoint-system/{service}");
        let mut reigns: Vec<Self> = Vec::new();
        for entry in history {
            if entry.key == lease {
                follow(&mut reigns, entry);
            } else if is_of(entry, service) {
                let reign = reigns.last_mut();
                let reign = reign.unwrap_or_else(|| panic!("nobody leads yet: {entry:?}"));
                reign.wrote(entry);
            }
        }
        reigns
    }

    /// What it cost to replace it by the next.
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
            "{} was written at {} by another than {}, who leads since {}",
            entry.key, entry.revision, self.holder, self.since
        );
        let (first, _) = self.writes.unwrap_or((entry.seen, entry.seen));
        self.writes = Some((first, entry.seen));
    }

    fn begin(entry: &Entry, lease: &Lease, term: u64) -> Self {
        let seconds = lease.spec.lease_duration_seconds.unwrap_or_default();
        Self {
            holder: lease.spec.holder_identity.clone().unwrap_or_default(),
            term,
            since: entry.revision,
            began: entry.seen,
            last_sign: entry.seen,
            last_sign_ns: entry.cause.written_ns,
            released: false,
            lasts: Duration::from_secs(u64::try_from(seconds).unwrap_or_default()),
            writes: None,
        }
    }
}

/// By how much the gateways' clock may be set meanwhile.
const JITTER: Duration = Duration::from_millis(250);

fn follow(reigns: &mut Vec<Reign>, entry: &Entry) {
    let object = entry.object.clone().expect("the Lease is never deleted");
    let lease = Lease::decode(object).expect("it is a Lease");
    let holder = lease.spec.holder_identity.clone().unwrap_or_default();
    let term = entry.cause.lease_term.expect("it has been held");
    match reigns.last_mut() {
        Some(reign) if reign.term == term => {
            assert!(holder == reign.holder || holder.is_empty(), "{lease:?}");
            reign.released = holder.is_empty();
            reign.last_sign = entry.seen;
            reign.last_sign_ns = entry.cause.written_ns;
        }
        Some(reign) => {
            assert_eq!(term, reign.term + 1, "terms follow one another");
            // Not by when it was heard here: one may have been heard later than it could be, and the next one in time.
            let silent = entry.cause.written_ns - reign.last_sign_ns;
            let silent = Duration::from_nanos(silent.try_into().unwrap_or_default());
            assert!(
                reign.released || silent + JITTER >= reign.lasts,
                "{holder} displaced {} after {silent:?}",
                reign.holder
            );
            reigns.push(Reign::begin(entry, &lease, term));
        }
        None => reigns.push(Reign::begin(entry, &lease, term)),
    }
}

/// Leases (and the namespaces that hold them) are what terms are made of, and Events tell of what has happened:
/// these are written without a fence.
fn is_of(entry: &Entry, service: &str) -> bool {
    const OPEN: [&str; 3] = ["events/", "leases/", "namespaces/"];
    let fenced = |key: &str| OPEN.iter().all(|open| !key.starts_with(open));
    entry.key.strip_prefix("/registry/").is_some_and(fenced) && entry.cause.writer == service
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history in which `write` is the only thing that differs.
    fn told(written_under: u64, silence: Duration) -> Vec<Entry> {
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
    fn a_good_history_tells_of_each_term() {
        let reigns = Reign::all(&told(1, Duration::from_secs(3)), "demo");
        assert_eq!(reigns.len(), 2);
        let handover = reigns[0].handover(&reigns[1]);
        assert_eq!(handover.leaderless, Duration::from_secs(3));
        assert!(handover.writeless.is_none(), "the first one wrote nothing");
    }

    #[test]
    #[should_panic(expected = "by another than b")]
    fn a_late_write_that_was_accepted_is_found() {
        Reign::all(&told(0, Duration::from_secs(3)), "demo");
    }

    #[test]
    #[should_panic(expected = "b displaced a")]
    fn a_leader_that_was_displaced_too_early_is_found() {
        Reign::all(&told(1, Duration::from_secs(1)), "demo");
    }
}
