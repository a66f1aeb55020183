//! The history of one object: the version before a revision, and the tombstone of a deleted object.

use std::sync::Arc;

use setpoint_codec::Kind;
use setpoint_model::{Key, Revision};
use setpoint_proto::ApiError;

use super::log::Topic;
use super::{Cache, Cached, decode};
use crate::{Error, keys};

/// The number of revisions that are sampled for a deleted object. Each sample is a read of the store.
const SAMPLES: u32 = 128;

/// The state of an object before a revision.
#[derive(Clone, Debug)]
pub enum Before {
    /// The version that it had.
    Version(Arc<Cached>),
    /// It did not exist.
    Nothing,
    /// Unknown: the history was compacted.
    Forgotten,
}

impl Cache {
    /// Reads the object as of the revision before `revision` from the store.
    ///
    /// # Errors
    /// `Timeout` or `ServiceUnavailable` if the store does not answer.
    pub async fn before(
        &self,
        kind: &'static Kind,
        key: &Key,
        revision: Revision,
    ) -> Result<Before, ApiError> {
        let at = revision.raw().saturating_sub(1);
        Ok(match self.at(kind, key, at).await {
            Ok(Some(version)) => Before::Version(version),
            Ok(None) => Before::Nothing,
            Err(Error::Expired) => Before::Forgotten,
            Err(error) => return Err(error.into()),
        })
    }

    /// Returns the tombstone of a deleted object: its last version, with the revision and cause of the deletion.
    ///
    /// It is taken from the log, or else searched for in the history of the store. The search takes up to about 200
    /// reads, does not find the cause, and may miss an object that existed only for a short time.
    ///
    /// # Errors
    /// `Timeout` or `ServiceUnavailable` if the store does not answer.
    pub async fn tombstone(
        &self,
        kind: &'static Kind,
        key: &Key,
    ) -> Result<Option<Arc<Cached>>, ApiError> {
        if let Some(gone) = self.tombstone_in_log(kind, key) {
            return Ok(Some(gone));
        }
        let newest = self.newest.get().await?.raw();
        let Some((exists, gone)) = self.find_interval(kind, key, newest).await? else {
            return Ok(None);
        };
        let (version, deleted) = self.last_version(kind, key, exists, gone).await?;
        let deleted = Revision::from_raw(deleted);
        Ok(version.map(|version| Arc::new(version.at_deletion(deleted, None))))
    }

    fn tombstone_in_log(&self, kind: &'static Kind, key: &Key) -> Option<Arc<Cached>> {
        let state = self.shared.state.read();
        let topic = Topic::Kind(&kind.stored_as);
        let ends = |old: &Option<Arc<Cached>>| old.as_ref().is_some_and(|old| old.key == *key);
        let record = state
            .log
            .newest(&topic, |record| record.new.is_none() && ends(&record.old))?;
        record.tombstone()
    }

    /// Searches for a revision at which the object existed, and a later one at which it did not: first backwards in
    /// growing steps to the start of the history, then at samples spread over all of it.
    async fn find_interval(
        &self,
        kind: &'static Kind,
        key: &Key,
        newest: u64,
    ) -> Result<Option<(u64, u64)>, Error> {
        let (mut gone, mut forgotten, mut step) = (newest, 0, 1);
        while gone > forgotten + 1 {
            let at = match gone.checked_sub(step).filter(|at| *at > forgotten) {
                Some(at) => at,
                None => forgotten.midpoint(gone),
            };
            match self.at(kind, key, at).await {
                Ok(Some(_)) => return Ok(Some((at, gone))),
                Ok(None) => (gone, step) = (at, step.saturating_mul(2)),
                Err(Error::Expired) => forgotten = at,
                Err(error) => return Err(error),
            }
        }
        for n in 1..=SAMPLES {
            let at = gone + spread(n, newest - gone);
            match self.at(kind, key, at).await {
                Ok(Some(_)) => return Ok(Some((at, newest))),
                // `Expired` if compacted in the meantime; later samples may still succeed.
                Ok(None) | Err(Error::Expired) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Finds by bisection the last version before a deletion, and the revision of the deletion, between a revision at
    /// which the object existed and one at which it did not.
    async fn last_version(
        &self,
        kind: &'static Kind,
        key: &Key,
        mut exists: u64,
        mut gone: u64,
    ) -> Result<(Option<Arc<Cached>>, u64), Error> {
        let mut version = self.at(kind, key, exists).await?;
        while gone > exists + 1 {
            let at = exists.midpoint(gone);
            match self.at(kind, key, at).await? {
                Some(later) => (exists, version) = (at, Some(later)),
                None => gone = at,
            }
        }
        Ok((version, gone))
    }

    async fn at(
        &self,
        kind: &'static Kind,
        key: &Key,
        at: u64,
    ) -> Result<Option<Arc<Cached>>, Error> {
        let path = keys::object(kind, key);
        let entry = self
            .shared
            .store
            .get_at(&path, Revision::from_raw(at))
            .await?;
        let custom = self.shared.table.custom();
        let decoded = entry.and_then(|entry| decode::object(&custom, &entry));
        Ok(decoded)
    }
}

/// Returns the `n`th element of a sequence below `length` of which every prefix is evenly distributed (van der
/// Corput's).
fn spread(n: u32, length: u64) -> u64 {
    let fraction = u64::from(n.reverse_bits());
    let product = u128::from(fraction) * u128::from(length);
    u64::try_from(product >> u32::BITS).unwrap_or(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_of_samples_is_spread_evenly() {
        let first: Vec<_> = (1..=7).map(|n| spread(n, 80)).collect();
        assert_eq!(first, [40, 20, 60, 10, 50, 30, 70]);
        assert!(spread(u32::MAX, u64::MAX) < u64::MAX);
    }
}
