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
//! * Only monotonic clocks are used, and only the local times at which the Lease was observed to change: wall clocks may
//!   differ by hours, and jump. If the rates of two clocks differ by more than a tenth, a leader that hangs may regard its term
//!   as current for the difference; the fence refuses its writes.
//! * Work under a term ends before the Lease can expire for others, even if a renewal hangs.
//! * A standby watches the Lease and acquires a released one at once.
//! * Each term has a holder identity of its own, so that its fence ends with it.
//!
//! A single leader saves work. Safety comes from the [`Fence`]: once another term has begun, the gateway refuses the
//! writes of this one.

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
/// `work` should end soon after `shutdown`; then the Lease is released, and a standby acquires it at once. If `work` returns
/// earlier or panics, the term ends and another one is contended for. The holder identity in the Lease is
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

/// Acquires the Lease and leads, term after term, until `shutdown`. If the work panics, the Lease is released before the
/// panic is resumed.
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
