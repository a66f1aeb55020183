//! One object's past: the version before a version, and how something that is gone stood last.

use std::sync::Arc;

use setpoint_codec::Kind;
use setpoint_model::{Key, Revision};
use setpoint_proto::ApiError;

use super::log::Topic;
use super::{Cache, Cached, load};
use crate::store::{Error, keys};

/// So often the history is looked into for something that is gone; each look is a read of the store.
const SAMPLES: u32 = 128;

/// What there was before a version.
#[derive(Clone, Debug)]
pub enum Before {
    /// This version.
    Version(Arc<Cached>),
    /// Nothing: the object was created then.
    Nothing,
    /// Nobody knows any more: the store has been compacted since.
    Forgotten,
}

impl Cache {
    /// The object as it stood just before `revision`. It is read from the store.
    ///
    /// # Errors
    /// `Timeout` or `ServiceUnavailable` when the store does not answer.
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

    /// An object that is gone, as it last stood, at the revision and with the cause of its deletion.
    ///
    /// It comes from the log, or is looked for in the store, which may take some two hundred reads; there the cause is
    /// not known, and an object that lived only for a moment may be missed.
    ///
    /// # Errors
    /// `Timeout` or `ServiceUnavailable` when the store does not answer.
    pub async fn farewell(
        &self,
        kind: &'static Kind,
        key: &Key,
    ) -> Result<Option<Arc<Cached>>, ApiError> {
        if let Some(gone) = self.farewell_in_log(kind, key) {
            return Ok(Some(gone));
        }
        let newest = self.freshness.newest().await?.raw();
        let Some((there, gone)) = self.look_back(kind, key, newest).await? else {
            return Ok(None);
        };
        let (version, deleted) = self.last_version(kind, key, there, gone).await?;
        let deleted = Revision::from_raw(deleted);
        Ok(version.map(|version| Arc::new(version.last_seen_at(deleted, None))))
    }

    fn farewell_in_log(&self, kind: &'static Kind, key: &Key) -> Option<Arc<Cached>> {
        let state = self.shared.state.read();
        let topic = Topic::Kind(&kind.type_url);
        let ends = |old: &Option<Arc<Cached>>| old.as_ref().is_some_and(|old| old.key == *key);
        let record = state
            .log
            .newest(&topic, |record| record.new.is_none() && ends(&record.old))?;
        record.farewell()
    }

    /// A revision at which the object was there, and a later one at which it was not: looked for in growing steps back
    /// to where the history ends, then all over it, ever more closely.
    async fn look_back(
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
                // Compacted meanwhile, perhaps; later samples tell.
                Ok(None) | Err(Error::Expired) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// The last version between a revision at which the object was there and one at which it was not, and the revision
    /// that ended it.
    async fn last_version(
        &self,
        kind: &'static Kind,
        key: &Key,
        mut there: u64,
        mut gone: u64,
    ) -> Result<(Option<Arc<Cached>>, u64), Error> {
        let mut version = self.at(kind, key, there).await?;
        while gone > there + 1 {
            let at = there.midpoint(gone);
            match self.at(kind, key, at).await? {
                Some(later) => (there, version) = (at, Some(later)),
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
        Ok(entry.as_ref().and_then(load::object))
    }
}

/// The `n`th of numbers below `length` that fill it evenly, however many are taken (van der Corput's sequence).
fn spread(n: u32, length: u64) -> u64 {
    let fraction = u64::from(n.reverse_bits());
    let product = u128::from(fraction) * u128::from(length);
    u64::try_from(product >> u32::BITS).unwrap_or(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_spread_evenly_however_many_are_taken() {
        let first: Vec<_> = (1..=7).map(|n| spread(n, 80)).collect();
        assert_eq!(first, [40, 20, 60, 10, 50, 30, 70]);
        assert!(spread(u32::MAX, u64::MAX) < u64::MAX);
    }
}
