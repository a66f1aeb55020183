//! The changes of the caches: a leader's queue takes them, a standby ignores them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use setpoint_controller::queue::Limiter;
use setpoint_controller::{Client, DecisionLog, Delta, Queue, Reader, Recorder, Term};
use setpoint_model::Key;
use setpoint_proto::Cause;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::backlog::Backlog;
use crate::doubts::Doubts;
use crate::metrics;
use crate::node::NodeView;
use crate::pod::PodView;
use crate::rounds::Scheduler;
use crate::settings::Settings;

/// The time after which a wait for the former leader's writes is logged.
const CATCH_UP: Duration = Duration::from_secs(5);

/// The caches, and the scheduler of the current term if this process leads. Clones are the same.
#[derive(Clone)]
pub struct Shift {
    pods: Reader<PodView>,
    nodes: Reader<NodeView>,
    events: Recorder,
    decision_log: DecisionLog,
    settings: Settings,
    current: Arc<RwLock<Option<Arc<Scheduler>>>>,
}

impl Shift {
    /// Returns the state without a leader.
    pub fn new(
        pods: Reader<PodView>,
        nodes: Reader<NodeView>,
        events: Recorder,
        decision_log: DecisionLog,
        settings: Settings,
    ) -> Self {
        let current = Arc::default();
        Self {
            pods,
            nodes,
            events,
            decision_log,
            settings,
            current,
        }
    }

    /// Resolves when both caches are complete.
    pub async fn synced(&self) {
        tokio::join!(self.pods.synced(), self.nodes.synced());
    }

    /// One term: catch up with the former leader, look at every Pod once, then at what changes.
    pub async fn lead(&self, gateway: Client, term: Term, stop: CancellationToken) {
        let fenced = gateway.under(&term.fence);
        tokio::select! {
            () = term.lost.cancelled() => return,
            () = stop.cancelled() => return,
            () = self.catch_up(&term) => {}
        }
        let scheduler = Arc::new(self.scheduler());
        *self.current.write() = Some(scheduler.clone());
        metrics::watch(&scheduler);
        self.pods
            .for_each(|pod, cause| self.add(&scheduler, pod, cause));
        let cycles = || scheduler.run(&fenced, &stop);
        let cycles = gateway.tasks().supervise("scheduling", "", cycles);
        tokio::select! {
            () = term.lost.cancelled() => {}
            () = cycles => {}
        }
        *self.current.write() = None;
    }

    fn scheduler(&self) -> Scheduler {
        Scheduler {
            // A Pod whose write failed rests 10 s at most, as in upstream.
            queue: Queue::new("scheduler", Limiter::FastSlow),
            backlog: Backlog::default(),
            doubts: Doubts::default(),
            written: Mutex::default(),
            pods: self.pods.clone(),
            nodes: self.nodes.clone(),
            events: self.events.clone(),
            decision_log: self.decision_log.clone(),
            settings: self.settings.clone(),
        }
    }

    /// The former leader may have bound Pods until our term began: deciding on less would place them twice.
    async fn catch_up(&self, term: &Term) {
        while timeout(CATCH_UP, self.pods.reach(term.revision))
            .await
            .is_err()
        {
            warn!(revision = %term.revision, "the cache has not caught up yet");
        }
        info!(fence = %term.fence, "leading");
    }

    /// A Pod changed: it may need a node, or have made room on one.
    pub fn pod(&self, change: &Delta<PodView>) {
        let Some(scheduler) = self.current.read().clone() else {
            return;
        };
        let (old, new) = (change.old.as_deref(), change.new.as_deref());
        if let Some(new) = new.filter(|new| old.is_none_or(|old| new.asks_otherwise_than(old))) {
            self.add(&scheduler, new, change.cause.as_ref());
        }
        let room = old.is_some_and(|old| old.occupies().is_some());
        if room && new.is_none_or(|new| new.occupies().is_none()) {
            scheduler.backlog.wake(&scheduler.queue);
        }
        if new.is_none_or(|new| new.wants.is_none()) {
            old.or(new).inspect(|pod| scheduler.settle(&pod.meta.key));
        }
    }

    /// A node changed: Pods that fitted nowhere may fit now.
    pub fn node(&self, change: &Delta<NodeView>) {
        let Some(scheduler) = self.current.read().clone() else {
            return;
        };
        let old = change.old.as_deref();
        let better = |new: &NodeView| old.is_none_or(|old| new.offers_more_than(old));
        if change.new.as_deref().is_some_and(better) {
            scheduler.backlog.wake(&scheduler.queue);
        }
    }

    fn add(&self, scheduler: &Scheduler, pod: &PodView, cause: Option<&Cause>) {
        let key: &Key = &pod.meta.key;
        if scheduler.is_ours(pod) {
            scheduler.queue.add(key.clone(), cause.cloned());
        }
    }
}
