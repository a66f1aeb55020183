//! How far an informer's copy has come, and how far someone needs it to be.

use std::time::Duration;

use setpoint_model::Revision;
use tokio::sync::watch;
use tokio::time::sleep;

/// Well above what a change takes to arrive, well below what a person notices.
const SILENCE: Duration = Duration::from_millis(200);

/// Shared by an informer and those who wait for it.
#[derive(Clone)]
pub(crate) struct Progress {
    /// `None` until the copy has been complete once.
    reached: watch::Sender<Option<Revision>>,
    wanted: watch::Sender<Revision>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            reached: watch::Sender::new(None),
            wanted: watch::Sender::default(),
        }
    }
}

impl Progress {
    pub(super) fn reached(&self) -> Option<Revision> {
        *self.reached.borrow()
    }

    /// The copy holds everything up to here.
    pub(super) fn advance(&self, revision: Revision) {
        self.reached.send_replace(Some(revision));
    }

    /// The copy has just been fetched anew: what is wanted beyond that does not exist, as far as the gateway knows.
    pub(super) fn renewed(&self, revision: Revision) {
        self.advance(revision);
        self.wanted.send_if_modified(|wanted| {
            let beyond = *wanted > revision;
            *wanted = revision.min(*wanted);
            beyond
        });
    }

    pub(super) async fn synced(&self) {
        self.wait_for(|reached| reached.is_some()).await;
    }

    /// Waits until the copy holds `revision`, and lets the informer know that someone waits for that.
    pub(crate) async fn reach(&self, revision: Revision) {
        let holds = |reached: &Option<Revision>| reached.is_some_and(|reached| reached >= revision);
        if holds(&self.reached()) {
            return;
        }
        self.wanted.send_if_modified(|wanted| {
            let more = revision > *wanted;
            *wanted = revision.max(*wanted);
            more
        });
        self.wait_for(holds).await;
    }

    /// Resolves when someone waits for more than what a complete copy has `reached`, and nothing has come for a while.
    ///
    /// Silence means that the newest revisions are of other kinds, or that the watch is dead: fetching the state anew
    /// settles both, and sooner than the next bookmark or keepalive would.
    pub(super) async fn starved(&self, reached: Option<Revision>) {
        let Some(reached) = reached else {
            return std::future::pending().await;
        };
        let mut wanted = self.wanted.subscribe();
        // The sender is `self`'s own, so that waiting cannot fail.
        let _ = wanted.wait_for(|wanted| *wanted > reached).await;
        sleep(SILENCE).await;
    }

    async fn wait_for(&self, enough: impl FnMut(&Option<Revision>) -> bool) {
        let mut reached = self.reached.subscribe();
        let _ = reached.wait_for(enough).await;
    }
}
