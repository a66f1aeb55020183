//! The search for Services that the kernel refuses, among those that have changed since it last took everything.

use std::collections::BTreeSet;

use setpoint_model::Key;

use super::blocks::Blocks;
use super::{Base, Error, Tools};
use crate::Place;
use crate::ledger::{Changes, Delta, Ledger};

/// The largest number of Services that are left out at once. If it refuses more, something else is wrong.
const MAX: usize = 16;

/// Trials of transactions, which change nothing.
pub struct Trial<'a> {
    pub base: &'a Base,
    pub tools: &'a Tools,
    pub place: &'a Place,
}

impl Trial<'_> {
    /// Tries a table with these Services and no others.
    async fn with(&self, services: &Delta) -> Result<(), Error> {
        let blocks = &mut Blocks::default();
        let transaction = self.base.whole(self.place, services, blocks);
        let (socket, limit) = (&self.tools.socket, self.tools.timeout);
        socket.check(&transaction, limit).await
    }
}

/// The Services that have changed since the last transaction that was made.
#[derive(Debug, Default)]
pub struct Suspects(BTreeSet<Key>);

impl Suspects {
    /// Adds Services that change.
    pub fn note(&mut self, changes: &Changes) {
        let changed = changes.iter().filter(|(_, plan)| plan.is_some());
        self.0.extend(changed.map(|(key, _)| key.clone()));
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the Services that a trial refuses, each with its error.
    ///
    /// A part that is refused is split in halves until it is one Service: of `n` Services with `k` culprits, that takes
    /// about `2 k log2(n)` trials, whose size halves each time.
    ///
    /// # Errors
    /// If none is to blame, more than 16 are, or a trial fails otherwise.
    pub async fn refused(
        &self,
        ledger: &Ledger,
        trial: &Trial<'_>,
    ) -> Result<Vec<(Key, Error)>, Error> {
        trial.with(&Delta::default()).await?;
        let (mut found, mut parts) = (Vec::new(), Vec::new());
        parts.push(self.0.iter().cloned().collect::<Vec<_>>());
        while let Some(mut part) = parts.pop() {
            let error = match trial.with(&ledger.part(&part)).await {
                Ok(()) => continue,
                Err(error @ Error::Refused { .. }) if found.len() < MAX => error,
                Err(error) => return Err(error),
            };
            // Of one Service, the second half is all of it; of none, nothing is refused.
            let half = part.split_off(part.len().div_euclid(2));
            match (part.is_empty(), half.first()) {
                (true, Some(only)) => found.push((only.clone(), error)),
                _ => parts.extend([half, part]),
            }
        }
        Ok(found)
    }
}
