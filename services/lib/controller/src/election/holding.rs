//! A leader: renews the Lease while the work runs, and releases it afterwards.

use std::future::Future;
use std::time::Duration;

use setpoint_model::Revision;
use setpoint_proto::coordination::Lease;
use setpoint_proto::{ApiError, Reason};
use setpoint_task::next_tick;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::Term;
use super::candidate::Candidate;
use super::record::{holder, released, renewed};
use crate::{Backoff, Fence, Written, metrics};

/// The time limit of work after shutdown, during which the Lease is renewed.
const DRAIN: Duration = Duration::from_secs(10);
/// The number of attempts to release the Lease, which expires otherwise.
const RELEASE_TRIES: usize = 5;

/// A Lease that this process holds.
pub(super) struct Holding<'a> {
    candidate: &'a Candidate,
    lease: Lease,
    /// When the term began.
    revision: Revision,
    fence: Fence,
    identity: String,
    /// Send time of the last successful renewal. Measured from sending, so that work stops before any standby's
    /// timeout can fire.
    renewed: Instant,
}

/// The result of a renewal.
enum Renewal {
    Sent(Instant),
    TakenOver,
}

impl<'a> Holding<'a> {
    /// # Errors
    /// `InternalError` if the response has no term: no write could be fenced.
    pub(super) fn new(
        candidate: &'a Candidate,
        written: Written<Lease>,
        identity: &str,
        sent: Instant,
    ) -> Result<Self, ApiError> {
        let Some(term) = written.lease_term() else {
            let message = "the response does not contain the term of the Lease";
            return Err(ApiError::new(Reason::InternalError, message));
        };
        let fence = Fence {
            namespace: candidate.key.namespace.clone(),
            lease: candidate.key.name.clone(),
            term,
        };
        Ok(Self {
            candidate,
            lease: written.object()?,
            revision: written.revision,
            fence,
            identity: identity.to_owned(),
            renewed: sent,
        })
    }

    /// Runs the work until it ends, the term is lost, or its time limit after `shutdown` is over.
    pub(super) async fn lead<F, Fut>(&mut self, shutdown: &CancellationToken, work: &mut F)
    where
        F: FnMut(Term) -> Fut,
        Fut: Future<Output = ()>,
    {
        let name = self.candidate.key.name.clone();
        let lost = CancellationToken::new();
        let _over = lost.clone().drop_guard();
        let fence = self.fence.clone();
        info!(lease = %self.candidate.key, identity = self.identity, term = fence.term, "elected");
        metrics::leading(&name, true);
        let term = Term {
            fence,
            revision: self.revision,
            lost: lost.clone(),
        };
        let mut work = std::pin::pin!(work(term));
        tokio::select! {
            biased;
            others_may_lead = self.keep() => {
                warn!(lease = name, "leadership lost");
                lost.cancel();
                // Work that has not ended by then is dropped on return.
                let _ = timeout_at(others_may_lead, &mut work).await;
            }
            () = &mut work => {}
            () = too_long_after(shutdown) => warn!(lease = name, "work did not end in time: dropped"),
        }
    }

    /// Renews until the term has to stop or another replica holds the Lease. Returns the time from which another
    /// replica may lead.
    async fn keep(&mut self) -> Instant {
        let mut seen = self.candidate.seen.clone();
        let (identity, since) = (self.identity.clone(), self.revision);
        tokio::select! {
            biased;
            Ok(_) = seen.wait_for(|seen| seen.is_of_another(&identity, since)) => Instant::now(),
            others_may_lead = self.keep_renewing() => others_may_lead,
        }
    }

    async fn keep_renewing(&mut self) -> Instant {
        let settings = &self.candidate.settings;
        loop {
            let earliest = self.renewed + Duration::from_nanos(1);
            sleep_until(next_tick(earliest, settings.renewal_period())).await;
            let deadline = self.renewed + settings.stop_after();
            match timeout_at(deadline, self.renew()).await {
                Ok(Renewal::Sent(at)) => self.renewed = at,
                Ok(Renewal::TakenOver) => return Instant::now(),
                Err(_) => return self.renewed + settings.lease_duration,
            }
        }
    }

    /// Tries to renew until that succeeds, or fails for good.
    async fn renew(&mut self) -> Renewal {
        let settings = &self.candidate.settings;
        loop {
            let sent = Instant::now();
            let left = (self.renewed + settings.stop_after()).saturating_duration_since(sent);
            let lease = renewed(&self.lease);
            let attempt = async { self.candidate.gateway.update(&lease).await?.object() };
            // An attempt that hangs must leave time for another one.
            let limit = match left > settings.retry_period {
                true => left / 2,
                false => left,
            };
            match timeout(limit, attempt).await {
                Ok(Ok(lease)) => {
                    self.lease = lease;
                    return Renewal::Sent(sent);
                }
                Ok(Err(error)) if is_overtaken(&error) => {
                    if !self.refresh().await {
                        return Renewal::TakenOver;
                    }
                }
                Ok(Err(error)) => warn!(lease = %self.candidate.key, %error, "not renewed"),
                Err(_) => warn!(lease = %self.candidate.key, "a renewal hangs"),
            }
            sleep(settings.retry_period / 4).await;
        }
    }

    /// Handles a conflicting change of the Lease, perhaps by an earlier attempt of this process; `false` if the Lease
    /// is lost.
    async fn refresh(&mut self) -> bool {
        match self
            .candidate
            .gateway
            .get::<Lease>(&self.candidate.key)
            .await
        {
            Ok(lease) => {
                let ours = holder(&lease) == self.identity;
                if ours {
                    self.lease = lease;
                }
                ours
            }
            Err(error) => error.reason != Reason::NotFound,
        }
    }

    /// Releases the Lease, so that a standby acquires it at once. Retries after a conflict with an in-flight renewal.
    pub(super) async fn release(mut self) {
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(200));
        for _ in 0..RELEASE_TRIES {
            let settings = &self.candidate.settings;
            let lease = released(&self.lease);
            let attempt = self.candidate.gateway.update(&lease);
            match timeout(settings.retry_period, attempt).await {
                Ok(Ok(_)) => return info!(lease = %self.candidate.key, "released"),
                Ok(Err(error)) if is_overtaken(&error) => {
                    if !self.refresh().await {
                        return;
                    }
                }
                Ok(Err(error)) => debug!(lease = %self.candidate.key, %error, "not released yet"),
                Err(_) => debug!(lease = %self.candidate.key, "not released yet"),
            }
            sleep(backoff.next_delay()).await;
        }
    }
}

fn is_overtaken(error: &ApiError) -> bool {
    matches!(error.reason, Reason::Conflict | Reason::NotFound)
}

async fn too_long_after(shutdown: &CancellationToken) {
    shutdown.cancelled().await;
    sleep(DRAIN).await;
}
