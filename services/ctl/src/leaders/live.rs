//! Standings as they change: what the gateway's watch tells, and who was silent for how long.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::client::ListOptions;
use setpoint_controller::{Client, Delta, Informer, Reader, Whole};
use setpoint_proto::coordination::Lease;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::standing::{REPLICAS, Standing, TERMS, holder, standings};

/// How long services were without a sign of life when their leaders last changed.
pub type Silences = BTreeMap<String, Duration>;

/// The standing terms of Leases, by name.
type Terms = Arc<Mutex<BTreeMap<String, u64>>>;

/// Copies of all Leases, kept up to date until this is dropped.
pub struct Live {
    terms: Reader<Whole<Lease>>,
    replicas: Reader<Whole<Lease>>,
    numbers: Terms,
    changed: watch::Receiver<Silences>,
    _watching: JoinSet<()>,
}

impl Live {
    /// Begins to watch, and waits until the copies are complete.
    pub async fn begin(gateway: &Client) -> Self {
        let (tell, changed) = watch::channel(Silences::new());
        let tell = Arc::new(tell);
        let (mut signs, silences) = (Signs::default(), tell.clone());
        let numbers = Terms::default();
        let noted = numbers.clone();
        let terms = informer(gateway, TERMS).on_event(move |delta| {
            note(&noted, delta);
            let silence = signs.observe(delta, Instant::now());
            silences.send_modify(|silences| silences.extend(silence));
        });
        let replicas = informer(gateway, REPLICAS).on_event(move |_| tell.send_modify(|_| ()));
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

    /// Waits until any Lease has changed since this was last called.
    pub async fn changed(&mut self) {
        // The senders live as long as the informers, and those as long as this.
        let _ = self.changed.changed().await;
    }

    /// How long each service was without a sign of life when its leader last changed.
    pub fn silences(&self) -> Silences {
        self.changed.borrow().clone()
    }

    /// How everyone stands now.
    pub fn standings(&self) -> Vec<Standing> {
        let (terms, replicas) = (self.terms.list(), self.replicas.list());
        let replicas: Vec<_> = replicas.iter().map(|view| &view.object).collect();
        let numbers = self.numbers.lock();
        let terms = terms.iter().map(|view| {
            let number = numbers.get(&view.object.metadata.name).copied();
            (&view.object, number.unwrap_or_default())
        });
        standings(terms, &replicas, Timestamp::now())
    }
}

fn informer(gateway: &Client, namespace: &str) -> Informer<Whole<Lease>> {
    let only = ListOptions {
        namespace: namespace.to_owned(),
        ..ListOptions::default()
    };
    gateway.informer().only(only)
}

/// Notes the term, which stands in the cause of the write.
fn note(terms: &Terms, delta: &Delta<Whole<Lease>>) {
    let term = delta.cause.as_ref().and_then(|cause| cause.lease_term);
    if let (Some(view), Some(term)) = (&delta.new, term) {
        let name = view.object.metadata.name.clone();
        terms.lock().insert(name, term);
    }
}

/// When each service's leader last gave a sign of life: by renewing, or by giving the Lease back.
#[derive(Default)]
struct Signs(BTreeMap<String, Instant>);

impl Signs {
    /// Answers the silence that a new leader has ended.
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
    fn silence_lasts_from_the_last_renewal_or_release_to_the_next_leader() {
        let begin = Instant::now();
        let mut signs = Signs::default();
        let mut observe = |old: &str, new: &str, at: u64| {
            let delta = Delta {
                old: view(old),
                new: view(new),
                cause: None,
                revision: setpoint_model::Revision::default(),
            };
            let found = signs.observe(&delta, begin + Duration::from_millis(at));
            found.map(|(_, silence)| silence.as_millis())
        };
        assert_eq!(observe("", "a_1", 0), None, "nobody was seen before");
        assert_eq!(observe("a_1", "a_1", 300), None);
        assert_eq!(observe("a_1", "b_2", 2500), Some(2200), "a crash");
        assert_eq!(observe("b_2", "", 3000), None);
        assert_eq!(observe("", "a_3", 3004), Some(4), "a release");
    }
}
