//! A controller's process: informers from the start, workers while it leads.

mod leader;
mod settings;
mod trigger;
pub(crate) mod worker;

use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use setpoint_model::Key;
use setpoint_proto::Resource as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use settings::{Error, Settings};

use crate::{
    Barrier, Client, DecisionLog, Informer, Owns, Reader, Reconciler, View, election, owners,
};
use leader::Leader;
use trigger::{Inbox, Watched, wake};

/// Runs a reconciler. Its informers run from the start, so that a standby is warm; its workers only while it leads.
pub struct Controller<R> {
    core: Leader<R>,
    informers: Vec<BoxFuture<'static, ()>>,
    stop: CancellationToken,
    ready: watch::Sender<bool>,
}

impl<R: Reconciler> Controller<R> {
    /// A controller that contends for the Lease of its name.
    pub fn new(name: &'static str, reconciler: R, gateway: Client) -> Self {
        let core = Leader {
            name,
            kind: "",
            reconciler: Arc::new(reconciler),
            gateway,
            settings: Settings::default(),
            sources: Vec::new(),
            barrier: Barrier::default(),
            inbox: Inbox::default(),
            decision_log: DecisionLog::default(),
        };
        Self {
            core,
            informers: Vec::new(),
            stop: CancellationToken::new(),
            ready: watch::Sender::new(false),
        }
    }

    /// Reconciles each object of the informer's kind whenever it appears, changes or goes.
    #[must_use]
    pub fn for_<V: View>(mut self, informer: Informer<V>) -> Self {
        self.core.kind = V::Object::KIND;
        self.watches(informer, |view: &V| Some(view.meta().key.clone()))
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

    /// Returns whether its informers are synced, which makes it ready, leading or not.
    pub fn ready(&self) -> watch::Receiver<bool> {
        self.ready.subscribe()
    }

    /// Runs until `shutdown`; then finishes the reconciles that run and releases the Lease.
    ///
    /// `instance` tells replicas apart, for example `replicaset-controller-0`.
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
        let synced = join_all(self.core.sources.iter().map(|source| source.synced()));
        if shutdown.run_until_cancelled(synced).await.is_none() {
            return Ok(());
        }
        self.ready.send_replace(true);
        let (core, instance) = (&self.core, instance.into());
        let (gateway, done) = (core.gateway.clone(), shutdown.clone());
        let election = core.settings.election.clone();
        election::run(gateway, election, core.name, &instance, shutdown, |term| {
            core.lead(term, done.clone())
        })
        .await
    }
}
