//! The progress of an informer's cache, and the waits for it.

use std::time::Duration;

use setpoint_model::Revision;
use tokio::sync::watch;
use tokio::time::sleep;

/// Well above what a change takes to arrive, well below what a person notices.
const SILENCE: Duration = Duration::from_millis(200);

/// Shared by an informer and those who wait for it.
#[derive(Clone, Default)]
pub(crate) struct Progress {
    reached: watch::Sender<Reached>,
    wanted: watch::Sender<Revision>,
}

/// The revision that the cache has reached, and the number of relists.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    /// `None` until the copy has been complete once.
    revision: Option<Revision>,
    /// The number of the fetch that was begun last.
    begun: u64,
    /// The number of the fetch that the copy was last replaced by.
    fetched: u64,
}

/// A moment after which the state may be fetched; see [`Progress::reach_since`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment(u64);

impl Progress {
    pub(super) fn reached(&self) -> Option<Revision> {
        self.reached.borrow().revision
    }

    /// The copy holds everything up to here.
    pub(super) fn advance(&self, revision: Revision) {
        self.reached
            .send_modify(|reached| reached.revision = Some(revision));
    }

    /// The whole state is about to be asked for.
    pub(super) fn fetching(&self) {
        self.reached
            .send_modify(|reached| reached.begun = reached.begun.wrapping_add(1));
    }

    /// The copy has just been fetched anew: what is wanted beyond that does not exist, as far as the gateway knows.
    pub(super) fn renewed(&self, revision: Revision) {
        self.reached.send_modify(|reached| {
            reached.revision = Some(revision);
            reached.fetched = reached.begun;
        });
        self.wanted.send_if_modified(|wanted| {
            let beyond = *wanted > revision;
            *wanted = revision.min(*wanted);
            beyond
        });
    }

    pub(super) async fn synced(&self) {
        self.wait_for(|reached| reached.revision.is_some()).await;
    }

    /// The present: a state that is fetched later holds every write that is committed by now.
    pub(crate) fn now(&self) -> Moment {
        Moment(self.reached.borrow().begun)
    }

    /// Like [`Progress::reach_since`], for a revision that was committed just now.
    pub(crate) async fn reach(&self, revision: Revision) {
        self.reach_since(revision, self.now()).await;
    }

    /// Waits until the copy holds `revision`, which was committed before `moment`, and lets the informer know that
    /// someone waits for that.
    ///
    /// A state that was fetched after the moment ends the wait, whatever its revision: if it is an earlier one, the store
    /// was restored, and has lost the revision.
    pub(crate) async fn reach_since(&self, revision: Revision, moment: Moment) {
        let holds = |reached: &Reached| {
            reached.revision.is_some_and(|reached| reached >= revision)
                || reached.fetched > moment.0
        };
        if holds(&self.reached.borrow()) {
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

    async fn wait_for(&self, enough: impl FnMut(&Reached) -> bool) {
        let mut reached = self.reached.subscribe();
        let _ = reached.wait_for(enough).await;
    }
}
