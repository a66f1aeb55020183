//! Runs reconcilers: informers from the start, workers while the process leads.
//!
//! Parameters: keys are taken singly or in batches ([`Controller::batches`]), the leader of several replicas works or
//! every process ([`Controller::unelected`]), and a reconcile executes one plan or several ([`Reconciler::PASSES`]).

mod leader;
mod settings;
mod trigger;
pub(crate) mod worker;

use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use setpoint_model::Key;
use setpoint_proto::coordination::Lease;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use settings::{Error, Settings};
pub use trigger::QueueHandle;

use crate::{
    Barrier, Client, DecisionLog, Delta, Informer, Owns, Reader, Reconciler, View, Whole, election,
    owners,
};
use leader::Leader;
use trigger::{Others, Synced, Watched};

/// Returns the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Runs a reconciler. Its informers run from the start, so that a standby is warm; its workers only while it leads.
pub struct Controller<R> {
    core: Leader<R>,
    informers: Vec<BoxFuture<'static, ()>>,
    elected: bool,
    /// The informer of the Leases of several elections, if they share one.
    leases: Option<Informer<Whole<Lease>>>,
    stop: CancellationToken,
    ready: watch::Sender<bool>,
}

impl<R: Reconciler> Controller<R> {
    /// Returns a controller that contends for the Lease of its name.
    pub fn new(name: &'static str, reconciler: R, gateway: Client) -> Self {
        let core = Leader {
            name,
            reconciler: Arc::new(reconciler),
            gateway,
            settings: Settings::default(),
            sources: Vec::new(),
            barrier: Barrier::default(),
            queues: vec![QueueHandle::default()],
            batches: None,
            clock: Arc::new(Timestamp::now),
            decision_log: DecisionLog::default(),
            eager: false,
        };
        Self {
            core,
            informers: Vec::new(),
            elected: true,
            leases: None,
            stop: CancellationToken::new(),
            ready: watch::Sender::new(false),
        }
    }

    /// Reconciles each object of the informer's kind whenever it appears, changes or goes.
    #[must_use]
    pub fn for_<V: View<Object = R::Object>>(self, informer: Informer<V>) -> Self {
        self.for_those(informer, |_| true, |_| true)
    }

    /// Like [`Self::for_`], for the objects that are `ours`, and only on changes that `matter`.
    #[must_use]
    pub fn for_those<V: View<Object = R::Object>>(
        self,
        informer: Informer<V>,
        ours: impl Fn(&V) -> bool + Send + Sync + 'static,
        matter: impl Fn(&Delta<V>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let key_of = move |view: &V| ours(view).then(|| view.meta().key.clone());
        self.watches_if(informer, key_of, matter)
    }

    /// Reconciles the owner whenever a child appears, changes or goes; for an orphan, all owners that select it.
    #[must_use]
    pub fn owns<O: Owns<C>, C: View>(self, children: Informer<C>, all: Reader<O>) -> Self {
        self.watches(children, move |child| owners(&all, child))
    }

    /// Reconciles the keys that `key_of` returns whenever an object appears, changes or goes: those of its old and its
    /// new state.
    ///
    /// Every informer that the reconciler reads belongs here, with `|_| None` if it wakes no key:
    /// reconciles wait until each holds what earlier ones have written.
    #[must_use]
    pub fn watches<V: View, K: IntoIterator<Item = Key> + 'static>(
        self,
        informer: Informer<V>,
        key_of: impl Fn(&V) -> K + Send + Sync + 'static,
    ) -> Self {
        self.watches_if(informer, key_of, |_| true)
    }

    /// Reconciles the keys that `keys` returns for a change, of objects that another informer has: many of them may
    /// depend on each of the objects here, such as all DaemonSets on each node. A sweep adds none of them.
    #[must_use]
    pub fn depends_on<V: View>(
        mut self,
        informer: Informer<V>,
        keys: impl Fn(&Delta<V>) -> Vec<Key> + Send + Sync + 'static,
    ) -> Self {
        let reader = informer.reader();
        self.core.barrier.watch(&reader);
        let queue = self.core.queues[0].clone();
        let informer = informer.on_event(move |delta| queue.concerned(delta, &keys));
        self.informers
            .push(Box::pin(informer.run(self.stop.clone())));
        self.core.sources.push(Box::new(Synced(reader)));
        self
    }

    fn watches_if<V: View, K: IntoIterator<Item = Key> + 'static>(
        mut self,
        informer: Informer<V>,
        key_of: impl Fn(&V) -> K + Send + Sync + 'static,
        matter: impl Fn(&Delta<V>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let key_of = Arc::new(key_of);
        let reader = informer.reader();
        self.core.barrier.watch(&reader);
        let (queue, keys) = (self.core.queues[0].clone(), key_of.clone());
        let informer = informer.on_event(move |delta| {
            if matter(delta) {
                queue.changed(delta, &*keys);
            }
        });
        self.informers
            .push(Box::pin(informer.run(self.stop.clone())));
        self.core.sources.push(Box::new(Watched { reader, key_of }));
        self
    }

    /// Adds keys to reconcile when a term begins and at each resync: those that no informer may have.
    #[must_use]
    pub fn sweeps(mut self, keys: impl Fn() -> Vec<Key> + Send + Sync + 'static) -> Self {
        self.core.sources.push(Box::new(Others(keys)));
        self
    }

    /// Sets a handle through which other code adds keys to the queue.
    #[must_use]
    pub fn queue(mut self, queue: &QueueHandle) -> Self {
        self.core.queues.push(queue.clone());
        self
    }

    /// Takes up to `size` keys at a time, the lowest ranks first. They are observed together, when the caches have
    /// reached the writes of the batch before; up to [`Settings::workers`] of them are reconciled concurrently.
    #[must_use]
    pub fn batches<O: Ord + Send>(
        mut self,
        size: usize,
        rank: impl Fn(&Key) -> O + Send + Sync + 'static,
    ) -> Self {
        let rank = Arc::new(rank);
        self.core.batches = Some(Arc::new(move |queue| {
            let rank = rank.clone();
            Box::pin(async move { queue.next_batch(size, &*rank).await })
        }));
        self
    }

    /// Works without a Lease, as every process of its kind does.
    #[must_use]
    pub fn unelected(mut self) -> Self {
        self.elected = false;
        self
    }

    /// Works before its informers are synced, for a reconciler that knows of objects that no gateway has. All keys are
    /// added when a term begins, and again once the informers are synced, when [`Reconciler::begin`] has been called.
    #[must_use]
    pub fn eager(mut self) -> Self {
        self.core.eager = true;
        self
    }

    /// Sets an informer that includes the Lease and is shared with other elections.
    #[must_use]
    pub fn leases(mut self, leases: Informer<Whole<Lease>>) -> Self {
        self.leases = Some(leases);
        self
    }

    /// Sets the clock; the system's otherwise.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.core.clock = clock;
        self
    }

    /// Sets the settings; the defaults otherwise.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.core.settings = settings;
        self
    }

    /// Sets the log of its decisions.
    #[must_use]
    pub fn decision_log(mut self, decision_log: &DecisionLog) -> Self {
        self.core.decision_log = decision_log.clone();
        self
    }

    /// Returns the reconciler.
    pub fn reconciler(&self) -> Arc<R> {
        self.core.reconciler.clone()
    }

    /// Returns whether its informers are synced, which makes it ready, leading or not.
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Runs until `shutdown`; then finishes the reconciles that run and releases the Lease.
    ///
    /// `instance` is the name of the replica, for example `replicaset-controller-0`.
    ///
    /// # Errors
    /// If the election's settings are invalid.
    pub async fn run(
        mut self,
        instance: impl Into<String>,
        shutdown: CancellationToken,
    ) -> Result<(), election::Error> {
        let _stop = self.stop.clone().drop_guard();
        let mut informers = JoinSet::new();
        for informer in std::mem::take(&mut self.informers) {
            informers.spawn(informer);
        }
        let (core, ready, instance) = (&self.core, &self.ready, instance.into());
        let synced = async {
            core.synced().await;
            ready.send_replace(true);
        };
        let synced = shutdown.run_until_cancelled(synced);
        let leases = self.leases.filter(|_| self.elected);
        let contend = core.contend(self.elected, leases, &instance, shutdown.clone());
        if core.eager {
            return tokio::join!(contend, synced).0;
        }
        match synced.await {
            Some(()) => contend.await,
            None => Ok(()),
        }
    }
}
