//! The leaderships as they change, from watches of the Leases.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::client::ListOptions;
use setpoint_controller::{Client, Delta, Informer, Reader, Whole};
use setpoint_model::replicas;
use setpoint_proto::coordination::Lease;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::leadership::{Leadership, holder, leaderships};

/// By service, the time between the last sign of life of the former leader and the first of the current one.
pub type Gaps = BTreeMap<String, Duration>;

/// The terms of the leader Leases, by name.
type Terms = Arc<Mutex<BTreeMap<String, u64>>>;

/// Caches of all Leases, kept up to date until this is dropped.
pub struct Live {
    terms: Reader<Whole<Lease>>,
    replicas: Reader<Whole<Lease>>,
    numbers: Terms,
    changed: watch::Receiver<Gaps>,
    _watching: JoinSet<()>,
}

impl Live {
    /// Starts the watches; returns when the caches are filled.
    pub async fn begin(gateway: &Client) -> Self {
        let (tell, changed) = watch::channel(Gaps::new());
        let tell = Arc::new(tell);
        let (mut last_seen, gaps) = (LastSeen::default(), tell.clone());
        let numbers = Terms::default();
        let noted = numbers.clone();
        let terms = informer(gateway, replicas::SYSTEM_NAMESPACE).on_event(move |delta| {
            note(&noted, delta);
            let gap = last_seen.observe(delta, Instant::now());
            gaps.send_modify(|gaps| gaps.extend(gap));
        });
        let replicas =
            informer(gateway, replicas::NAMESPACE).on_event(move |_| tell.send_modify(|_| ()));
        let mut watching = JoinSet::new();
        let live = (terms.reader(), replicas.reader());
        watching.spawn(terms.run(CancellationToken::new()));
        watching.spawn(replicas.run(CancellationToken::new()));
        live.0.synced().await;
        live.1.synced().await;
        Self {
            terms: live.0,
            replicas: live.1,
            numbers,
            changed,
            _watching: watching,
        }
    }

    /// Waits until a Lease has changed since the last call.
    pub async fn changed(&mut self) {
        // The senders belong to the informers, which live as long as `self`.
        let _ = self.changed.changed().await;
    }

    /// Returns the gap of each service at its last change of leader.
    pub fn gaps(&self) -> Gaps {
        self.changed.borrow().clone()
    }

    /// Returns the current leadership of every service.
    pub fn leaderships(&self) -> Vec<Leadership> {
        let (terms, replicas) = (self.terms.list(), self.replicas.list());
        let replicas: Vec<_> = replicas.iter().map(|view| &view.object).collect();
        let numbers = self.numbers.lock();
        let terms = terms.iter().map(|view| {
            let number = numbers.get(&view.object.metadata.name).copied();
            (&view.object, number.unwrap_or_default())
        });
        leaderships(terms, &replicas, Timestamp::now())
    }
}

fn informer(gateway: &Client, namespace: &str) -> Informer<Whole<Lease>> {
    let only = ListOptions {
        namespace: namespace.to_owned(),
        ..ListOptions::default()
    };
    gateway.informer().only(only)
}

/// Records the term of a Lease, which the cause of its write contains.
fn note(terms: &Terms, delta: &Delta<Whole<Lease>>) {
    let term = delta.cause.as_ref().and_then(|cause| cause.lease_term);
    if let (Some(view), Some(term)) = (&delta.new, term) {
        let name = view.object.metadata.name.clone();
        terms.lock().insert(name, term);
    }
}

/// By service, when the leader last renewed or released the Lease.
#[derive(Default)]
struct LastSeen(BTreeMap<String, Instant>);

impl LastSeen {
    /// Records a change. For a new leader, returns its service and the time since the last sign of life.
    fn observe(&mut self, delta: &Delta<Whole<Lease>>, now: Instant) -> Option<(String, Duration)> {
        let lease = &delta.new.as_ref()?.object;
        let former = delta.old.as_ref().and_then(|view| holder(&view.object));
        let begins = holder(lease).is_some() && holder(lease) != former;
        let name = lease.metadata.name.clone();
        let last = self.0.insert(name.clone(), now)?;
        begins.then(|| (name, now - last))
    }
}

#[cfg(test)]
mod tests {
    use setpoint_controller::View;

    use super::*;

    fn view(holder: &str) -> Option<Arc<Whole<Lease>>> {
        let mut lease = Lease::default();
        lease.metadata.name = "s".to_owned();
        lease.spec.holder_identity = Some(holder.to_owned());
        Some(Arc::new(Whole::of(lease)))
    }

    #[test]
    fn a_gap_lasts_from_the_last_renewal_or_release_to_the_next_leader() {
        let begin = Instant::now();
        let mut last_seen = LastSeen::default();
        let mut observe = |old: &str, new: &str, at: u64| {
            let delta = Delta {
                old: view(old),
                new: view(new),
                cause: None,
                revision: setpoint_model::Revision::default(),
            };
            let found = last_seen.observe(&delta, begin + Duration::from_millis(at));
            found.map(|(_, gap)| gap.as_millis())
        };
        assert_eq!(observe("", "a_1", 0), None, "there was no leader before");
        assert_eq!(observe("a_1", "a_1", 300), None);
        assert_eq!(observe("a_1", "b_2", 2500), Some(2200), "a crash");
        assert_eq!(observe("b_2", "", 3000), None);
        assert_eq!(observe("", "a_3", 3004), Some(4), "a release");
    }
}
