//! The progress of an informer's cache, and the waits for it.

use std::time::Duration;

use setpoint_model::Revision;
use tokio::sync::watch;
use tokio::time::sleep;

/// The time without an event after which a waiting reader causes a relist: well above the delay of a change, well below
/// what a user notices.
const SILENCE: Duration = Duration::from_millis(200);

/// The progress of a cache. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Progress {
    reached: watch::Sender<Reached>,
    wanted: watch::Sender<Revision>,
}

/// The revision that the cache has reached, and the number of relists.
#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    /// `None` until the cache has been complete once.
    revision: Option<Revision>,
    /// The number of the relist that was started last.
    begun: u64,
    /// The number of the relist that replaced the cache last.
    fetched: u64,
}

/// A point in the order of relists; see [`Progress::reach_since`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Progress {
    pub(super) fn reached(&self) -> Option<Revision> {
        self.reached.borrow().revision
    }

    /// Records that the cache has reached `revision`.
    pub(super) fn advance(&self, revision: Revision) {
        self.reached
            .send_modify(|reached| reached.revision = Some(revision));
    }

    /// Records that a relist is about to start.
    pub(super) fn fetching(&self) {
        self.reached
            .send_modify(|reached| reached.begun = reached.begun.wrapping_add(1));
    }

    /// Records that a relist at `revision` has replaced the cache. Waits for a later revision that began before the
    /// relist end: the gateway has none.
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

    /// Returns the current point: a relist that starts later contains every write committed so far.
    pub(crate) fn now(&self) -> Moment {
        Moment(self.reached.borrow().begun)
    }

    /// Is [`Progress::reach_since`] now.
    pub(crate) async fn reach(&self, revision: Revision) {
        self.reach_since(revision, self.now()).await;
    }

    /// Waits until the cache has reached `revision`, which was committed before `moment`; a wait without events makes
    /// the informer relist.
    ///
    /// A relist that started after `moment` ends the wait, whatever its revision: if that is lower, the store was
    /// restored and has lost `revision`.
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

    /// Resolves when a reader waits for a later revision than `reached` and no event has come for a while.
    ///
    /// Either the newest revisions are of other kinds, or the watch is dead; a relist resolves both before the next
    /// bookmark or keepalive does.
    pub(super) async fn starved(&self, reached: Option<Revision>) {
        let Some(reached) = reached else {
            return std::future::pending().await;
        };
        let mut wanted = self.wanted.subscribe();
        // `self` owns the sender, so that waiting cannot fail.
        let _ = wanted.wait_for(|wanted| *wanted > reached).await;
        sleep(SILENCE).await;
    }

    async fn wait_for(&self, enough: impl FnMut(&Reached) -> bool) {
        let mut reached = self.reached.subscribe();
        let _ = reached.wait_for(enough).await;
    }
}
