//! Leader election: one of several replicas works, the others stand by.
//!
//! ```text
//!                    the Lease is free, or has not changed for its duration
//!   Standing by ─────────────────────────────────────────────────────────────▶ Leading
//!       ▲                                                                         │
//!       └─────── lost: not renewed in time, or another holds it; or work ended ───┘
//! ```
//!
//! Guarantees:
//! * Only monotonic clocks are used, and only the local times at which the Lease was observed to change: wall clocks
//!   may differ by hours, and jump. If the rates of two clocks differ by more than a tenth, a leader that hangs may
//!   regard its term as current for the difference; the fence refuses its writes.
//! * Work under a term ends before the Lease can expire for others, even if a renewal hangs.
//! * A standby watches the Lease and acquires a released one at once.
//! * Each term has a holder identity of its own, so that its fence ends with it.
//!
//! A single leader saves work. Safety comes from the [`Fence`]: once another term has begun, the gateway refuses the
//! writes of this one.
//!
//! A leader that is stopped (SIGTERM) finishes its reconciles and releases its Lease. If all of the above fails (a
//! frozen process, a delayed packet), etcd refuses the write in the transaction that would have made it;
//! `setpoint_fenced_writes_total` counts those. `cargo nextest run -p setpoint-tests fencing` freezes leaders in the
//! middle of their work and shows that none of their late writes is accepted (50 rounds with `--run-ignored all`).
//!
//! Each replica, leading or not, has a Lease of its own in `setpoint-replicas`, with its service as a label and its
//! address as an annotation (`membership`).
//!
//! A Lease is renewed at half of the renew deadline (client-go: at each retry period), so an idle cluster costs less
//! than half as many writes. The deadline begins with the attempt that fails, as in client-go, and a leader stops when
//! nine tenths of the Lease's duration have passed since the last renewal: most terms survive an outage of etcd of 8 s
//! (client-go: 8 to 10 s). The controllers of a process renew their Leases at the same moments and watch them by one
//! stream: a process that wakes once for twenty renewals costs a fraction of one that wakes twenty times, and so do the
//! gateway and etcd.
//!
//! # Decisions
//!
//! * 2026-11: we chose leaders whose writes are fenced over leaders that trust their clocks (client-go), because a
//!   process can be suspended between its last check and its write. Wrong if a store could not compare a second key in
//!   the transaction of a write.

mod candidate;
mod holding;
mod record;
mod settings;

use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt as _;
use setpoint_model::{Key, Revision};
use setpoint_proto::coordination::Lease;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use settings::{Error, Settings};

use crate::{Client, Fence, Informer, Whole, metrics};
use candidate::Candidate;

/// A period of leadership of this process.
#[derive(Clone, Debug)]
pub struct Term {
    /// The fence of every write of the term; see [`Client::under`].
    pub fence: Fence,
    /// The revision at which the term began: writes of former terms have lower ones.
    pub revision: Revision,
    /// Cancelled when the term is lost. Work that continues is dropped before another replica can lead.
    pub lost: CancellationToken,
}

impl Term {
    pub(crate) fn without_end() -> Self {
        Self {
            fence: Fence::open(),
            revision: Revision::default(),
            lost: CancellationToken::new(),
        }
    }
}

/// Contends for the Lease and calls `work` for each term that it wins, until `shutdown`.
///
/// `work` should end soon after `shutdown`; then the Lease is released, and a standby acquires it at once. If `work`
/// returns earlier or panics, the term ends and another one is contended for. The holder identity in the Lease is
/// `<instance>_<random>`.
///
/// # Errors
/// If the settings are invalid.
pub async fn run<F, Fut>(
    gateway: Client,
    settings: Settings,
    lease: &str,
    instance: &str,
    shutdown: CancellationToken,
    work: F,
) -> Result<(), Error>
where
    F: FnMut(Term) -> Fut + Send,
    Fut: Future<Output = ()> + Send,
{
    let key = Key::new(settings.namespace.clone(), lease);
    let leases = gateway.informer().only(candidate::only(&key));
    run_with(gateway, settings, leases, lease, instance, shutdown, work).await
}

/// Like [`run`], with an informer that includes the Lease and may be shared with other elections.
///
/// # Errors
/// If the settings are invalid.
pub async fn run_with<F, Fut>(
    gateway: Client,
    settings: Settings,
    leases: Informer<Whole<Lease>>,
    lease: &str,
    instance: &str,
    shutdown: CancellationToken,
    work: F,
) -> Result<(), Error>
where
    F: FnMut(Term) -> Fut + Send,
    Fut: Future<Output = ()> + Send,
{
    settings.validate()?;
    metrics::leading(lease, !settings.leader_elect);
    let tasks = gateway.tasks().clone();
    if !settings.leader_elect {
        let mut work = work;
        let start = || work(Term::without_end());
        tasks.supervise("leader", lease, start).await;
        return Ok(());
    }
    let (candidate, informer) = Candidate::new(gateway, settings, lease, instance, leases);
    let mut watching = JoinSet::new();
    watching.spawn(informer.run(CancellationToken::new()));
    let work = Mutex::new(work);
    let start = || async { contend(&candidate, &shutdown, &mut *work.lock().await).await };
    tasks.supervise("leader", lease, start).await;
    Ok(())
}

/// Acquires the Lease and leads, term after term, until `shutdown`. If the work panics, the Lease is released before
/// the panic is resumed.
async fn contend<F, Fut>(candidate: &Candidate, shutdown: &CancellationToken, work: &mut F)
where
    F: FnMut(Term) -> Fut + Send,
    Fut: Future<Output = ()> + Send,
{
    while let Some(mut holding) = shutdown.run_until_cancelled(candidate.win()).await {
        let led = AssertUnwindSafe(holding.lead(shutdown, work));
        let led = led.catch_unwind().await;
        metrics::leading(&candidate.key.name, false);
        holding.release().await;
        if let Err(panic) = led {
            resume_unwind(panic);
        }
        shutdown.run_until_cancelled(candidate.pause()).await;
    }
}
