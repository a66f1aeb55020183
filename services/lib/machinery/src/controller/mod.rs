//! A controller's process: informers from the start, workers while it leads.

mod core;
mod source;

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use setpoint_model::Key;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::queue::Limiter;
use crate::{Barrier, Gateway, Informer, Journal, Reconciler, View, election};
use core::Core;
use source::{Inbox, Watched, wake};

/// Reconcilers are made to miss nothing; this repairs what they missed nevertheless.
const RESYNC: Duration = Duration::from_secs(600);

/// Rounds mostly wait for the gateway: a few at once fill the time.
const WORKERS: usize = 4;

/// Runs a reconciler. Its informers run from the start, so that a standby is warm; its workers only while it leads.
pub struct Controller<R> {
    core: Core<R>,
    informers: Vec<BoxFuture<'static, ()>>,
    stop: CancellationToken,
    ready: watch::Sender<bool>,
}

impl<R: Reconciler> Controller<R> {
    /// A controller that contends for the Lease of its name.
    pub fn new(name: &'static str, reconciler: R, gateway: Gateway) -> Self {
        let core = Core {
            name,
            reconciler: Arc::new(reconciler),
            gateway,
            workers: WORKERS,
            limiter: Limiter::default(),
            resync: RESYNC,
            sources: Vec::new(),
            barrier: Barrier::default(),
            inbox: Inbox::default(),
            journal: Journal::default(),
        };
        Self {
            core,
            informers: Vec::new(),
            stop: CancellationToken::new(),
            ready: watch::Sender::new(false),
        }
    }

    /// Looks at the key of an object whenever the object appears, changes or goes; at its old and its new key alike.
    ///
    /// Every informer that the reconciler reads belongs here, with `|_| None` if it wakes nobody: rounds
    /// wait until each holds what the rounds before have written.
    #[must_use]
    pub fn watches<V: View, K: IntoIterator<Item = Key> + 'static>(
        mut self,
        informer: Informer<V>,
        key_of: impl Fn(&V) -> K + Send + Sync + 'static,
    ) -> Self {
        let key_of = Arc::new(key_of);
        let reader = informer.reader();
        self.core.barrier.watch(&reader);
        let (inbox, keys) = (self.core.inbox.clone(), key_of.clone());
        let informer = informer.on_event(move |delta| {
            if let Some(inlet) = &*inbox.read() {
                wake(inlet, delta, &*keys);
            }
        });
        self.informers
            .push(Box::pin(informer.run(self.stop.clone())));
        self.core.sources.push(Box::new(Watched { reader, key_of }));
        self
    }

    /// How many keys are worked on at once.
    #[must_use]
    pub const fn workers(mut self, workers: usize) -> Self {
        self.core.workers = workers;
        self
    }

    /// How long failing keys rest.
    #[must_use]
    pub const fn limiter(mut self, limiter: Limiter) -> Self {
        self.core.limiter = limiter;
        self
    }

    /// Where its rounds are written down, for those who ask why.
    #[must_use]
    pub fn journal(mut self, journal: &Journal) -> Self {
        self.core.journal = journal.clone();
        self
    }

    /// How often every key is looked at without a reason; zero for never.
    #[must_use]
    pub const fn resync(mut self, every: Duration) -> Self {
        self.core.resync = every;
        self
    }

    /// Tells when its informers are complete: then it is ready, leading or not.
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Runs until `shutdown`: then rounds under way are finished and the Lease is released.
    ///
    /// `instance` tells replicas apart, for example `replicaset-controller-0`.
    ///
    /// # Errors
    /// When the election's settings cannot work.
    pub async fn run(
        mut self,
        election: election::Settings,
        instance: impl Into<String>,
        shutdown: CancellationToken,
    ) -> Result<(), election::Error> {
        let _stop = self.stop.clone().drop_guard();
        let mut informers = JoinSet::new();
        for informer in std::mem::take(&mut self.informers) {
            informers.spawn(informer);
        }
        let synced = join_all(self.core.sources.iter().map(|source| source.synced()));
        if shutdown.run_until_cancelled(synced).await.is_none() {
            return Ok(());
        }
        self.ready.send_replace(true);
        let (core, instance) = (&self.core, instance.into());
        let (gateway, done) = (core.gateway.clone(), shutdown.clone());
        election::run(gateway, election, core.name, &instance, shutdown, |term| {
            core.lead(term, done.clone())
        })
        .await
    }
}
