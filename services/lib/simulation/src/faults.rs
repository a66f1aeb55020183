//! The faults of a process, which a test switches on and off.

use std::collections::BTreeSet;

/// The faults of one process.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// Its calls wait, and no change reaches it.
    pub frozen: bool,
    /// Its writes wait, those of Leases, too, while it sees all changes.
    pub holds_writes: bool,
    /// The kinds of which no change reaches it.
    pub lagging: BTreeSet<String>,
    /// The number of writes that are carried out and whose answers are lost.
    pub lost_answers: usize,
    /// The number of writes after which it crashes, before the last answer arrives.
    pub crash_after: Option<usize>,
    /// The number of times that its watches were broken.
    pub(crate) broken: usize,
    /// Watches cannot continue after an earlier revision.
    pub(crate) expired: u64,
    /// It has carried out its last write.
    pub(crate) crashed: bool,
}

impl Faults {
    /// Returns whether changes of a kind are held back.
    pub(crate) fn holds_back(&self, resource: &str) -> bool {
        self.frozen || self.lagging.contains(resource)
    }

    /// Counts a write that was carried out. Returns whether its answer is delivered.
    pub(crate) fn count_write(&mut self) -> Delivery {
        if let Some(left) = &mut self.crash_after {
            *left = left.saturating_sub(1);
            self.crashed = *left == 0;
        }
        if self.crashed {
            return Delivery::Never;
        }
        match self.lost_answers.checked_sub(1) {
            None => Delivery::Prompt,
            Some(left) => {
                self.lost_answers = left;
                Delivery::Lost
            }
        }
    }
}

/// The delivery of the answer to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Prompt,
    /// The connection breaks.
    Lost,
    /// The process is no more.
    Never,
}
