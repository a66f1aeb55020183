//! A term of a controller, from its first sweep to its last reconcile. A controller without election has one term.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use setpoint_model::Key;
use setpoint_task::catch_panic;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval_at, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::trigger::Trigger;
use super::worker::{Fenced, Seeds, Worker};
use super::{Clock, QueueHandle, Settings};
use crate::{Barrier, Client, DecisionLog, Queue, Reconciler, Term, Ticket, metrics};

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
}

impl<R: Reconciler> Leader<R> {
    /// Leads for one term, from the first sweep to the last reconcile.
    pub(super) async fn lead(&self, term: Term, shutdown: CancellationToken) {
        let barrier = self.barrier.fresh();
        tokio::select! {
            () = term.lost.cancelled() => return,
            () = shutdown.cancelled() => return,
            () = self.catch_up(&barrier, &term) => {}
        }
        self.reconciler.begin();
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
            () = self.resync_forever(&queue) => {}
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
