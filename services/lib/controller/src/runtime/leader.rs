//! A term of a controller, from its first sweep to its last reconcile. A controller without election has one term.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use setpoint_model::Key;
use setpoint_proto::coordination::Lease;
use setpoint_task::catch_panic;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::trigger::Trigger;
use super::worker::{Fenced, Seeds, Worker};
use super::{Clock, QueueHandle, Settings};
use crate::{
    Barrier, Client, DecisionLog, Informer, Queue, Reconciler, Term, Ticket, Whole, election,
    metrics,
};

/// The time after which a wait for the former leader's writes is logged.
const CATCH_UP: Duration = Duration::from_secs(5);

/// Takes the next batch of keys from a queue; `None` once the queue is closed and drained.
pub(super) type Batches =
    Arc<dyn Fn(Queue<Key>) -> BoxFuture<'static, Option<Vec<Ticket<Key>>>> + Send + Sync>;

/// A controller without its informers.
pub(super) struct Leader<R> {
    pub(super) name: &'static str,
    pub(super) reconciler: Arc<R>,
    pub(super) gateway: Client,
    pub(super) settings: Settings,
    pub(super) sources: Vec<Box<dyn Trigger>>,
    pub(super) barrier: Barrier,
    /// Its own handle of the queue, and those of others.
    pub(super) queues: Vec<QueueHandle>,
    /// `None` takes the keys one by one.
    pub(super) batches: Option<Batches>,
    pub(super) clock: Clock,
    pub(super) decision_log: DecisionLog,
    /// Whether it works before its informers are synced.
    pub(super) eager: bool,
}

impl<R: Reconciler> Leader<R> {
    /// Leads until `shutdown`: whenever this process is `elected`, or all the time if there is no election. `leases` is
    /// an informer that includes the Lease and is shared with other elections.
    ///
    /// # Errors
    /// If the election's settings are invalid.
    pub(super) async fn contend(
        &self,
        elected: bool,
        leases: Option<Informer<Whole<Lease>>>,
        instance: &str,
        shutdown: CancellationToken,
    ) -> Result<(), election::Error> {
        let (gateway, name, done) = (self.gateway.clone(), self.name, shutdown.clone());
        let lead = |term| self.lead(term, done.clone());
        if !elected {
            let tasks = gateway.tasks().clone();
            let start = || lead(Term::without_end());
            tasks.supervise("leader", name, start).await;
            return Ok(());
        }
        let election = self.settings.election.clone();
        match leases {
            Some(leases) => {
                election::run_with(gateway, election, leases, name, instance, shutdown, lead).await
            }
            None => election::run(gateway, election, name, instance, shutdown, lead).await,
        }
    }

    /// Leads for one term, from the first sweep to the last reconcile.
    pub(super) async fn lead(&self, term: Term, shutdown: CancellationToken) {
        let barrier = self.barrier.fresh();
        if !self.eager {
            tokio::select! {
                () = term.lost.cancelled() => return,
                () = shutdown.cancelled() => return,
                () = self.catch_up(&barrier, &term) => {}
            }
            self.reconciler.begin();
        }
        let queue = Queue::new(self.name, self.settings.limiter);
        let metrics = Arc::new(metrics::Reconciles::new(self.name, self.settings.workers));
        let open = |handle: &QueueHandle| handle.open(&queue, &metrics);
        self.queues.iter().for_each(open);
        self.sweep(&queue);
        let worker = Arc::new(Worker {
            controller: self.name,
            seeds: Seeds::default(),
            reconciler: self.reconciler.clone(),
            gateway: self.gateway.under(&term.fence),
            barrier,
            concurrency: self.settings.workers,
            batched: self.batches.is_some(),
            clock: self.clock.clone(),
            metrics,
            decision_log: self.decision_log.clone(),
        });
        tokio::select! {
            () = term.lost.cancelled() => {}
            () = self.work(&worker, &queue, &shutdown) => {}
            () = self.keep_complete(&queue) => {}
        }
        self.queues.iter().for_each(QueueHandle::close);
    }

    /// Waits until the caches have reached the start of the term: the former leader may have written until then, and a
    /// decision on older caches would repeat its writes.
    async fn catch_up(&self, barrier: &Barrier, term: &Term) {
        while timeout(CATCH_UP, barrier.all_reach(term.revision))
            .await
            .is_err()
        {
            warn!(controller = self.name, revision = %term.revision, "the caches have not caught up yet");
        }
        info!(controller = self.name, fence = %term.fence, "leading");
    }

    /// Runs the workers until shutdown or the first fenced write. Dropping it drops the reconciles that run.
    async fn work(
        &self,
        worker: &Arc<Worker<R>>,
        queue: &Queue<Key>,
        shutdown: &CancellationToken,
    ) {
        let batches = &self.batches;
        let run = || {
            let (worker, queue) = (worker.clone(), queue.clone());
            run(worker, queue, batches.clone(), shutdown.clone())
        };
        let mut workers = JoinSet::new();
        // A batch is worked on concurrently by itself.
        let count = if batches.is_some() {
            1
        } else {
            self.settings.workers
        };
        for _ in 0..count {
            workers.spawn(run());
        }
        while let Some(ended) = workers.join_next().await {
            match ended {
                Ok(Ok(())) => {}
                Ok(Err(Fenced)) => {
                    warn!(
                        controller = self.name,
                        "another leads: a write was fenced off"
                    );
                    return;
                }
                Err(panic) => {
                    error!(controller = self.name, %panic, "a worker panicked");
                    worker.metrics.panicked();
                    workers.spawn(run());
                }
            }
        }
    }

    /// Adds every key once, with the causes of its objects, so that a cascade continues in its trace after a change of
    /// the leader.
    fn sweep(&self, queue: &Queue<Key>) {
        for source in &self.sources {
            source.sweep(&mut |key, cause| queue.add(key, cause.cloned()));
        }
    }

    /// Returns once all informers are synced.
    pub(super) async fn synced(&self) {
        join_all(self.sources.iter().map(|source| source.synced())).await;
    }

    /// Adds every key once the informers are synced, if work has begun before, and at each resync.
    async fn keep_complete(&self, queue: &Queue<Key>) {
        if self.eager {
            self.synced().await;
            self.reconciler.begin();
            self.sweep(queue);
        }
        self.resync_forever(queue).await;
    }

    async fn resync_forever(&self, queue: &Queue<Key>) {
        let every = self.settings.resync;
        if every.is_zero() {
            return std::future::pending().await;
        }
        let mut ticks = interval_at(Instant::now() + every, every);
        loop {
            ticks.tick().await;
            for source in &self.sources {
                source.sweep(&mut |key, _| queue.add(key, None));
            }
        }
    }
}

async fn run<R: Reconciler>(
    worker: Arc<Worker<R>>,
    queue: Queue<Key>,
    batches: Option<Batches>,
    shutdown: CancellationToken,
) -> Result<(), Fenced> {
    let take = async || match &batches {
        Some(batches) => batches(queue.clone()).await,
        None => Some(vec![queue.next().await?]),
    };
    while let Some(Some(tickets)) = shutdown.run_until_cancelled(take()).await {
        // The tickets of a batch whose observation panics are dropped, so that its keys back off as after any failure.
        match catch_panic("reconcile", worker.work_on(tickets)).await {
            Ok(ended) => ended?,
            Err(_) => worker.metrics.panicked(),
        }
    }
    Ok(())
}
