//! The consistency check: a comparison of the cache with its store.
//!
//! No later revision reveals that a change was lost, or that the history was replaced by another one while the store
//! could not be reached. Therefore the keys of each kind, and the revisions of their last writes, are compared at
//! intervals, at the revision of the cache.

use std::fmt;
use std::future::pending;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use setpoint_codec::{Kind, kinds};
use setpoint_model::{Key, Revision};
use tokio::task::yield_now;
use tokio::time::sleep;

use super::reflector::PAGE;
use super::{Shared, metrics};
use crate::{Error, Range, Store, keys};

/// A digest of keys and the revisions of their last writes. It does not depend on their order, which differs between
/// store and cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest {
    keys: u64,
    sum: u64,
}

impl Digest {
    /// Adds a key.
    pub fn add(&mut self, key: &Key, revision: Revision) {
        let mut hasher = DefaultHasher::new();
        (key, revision).hash(&mut hasher);
        self.keys = self.keys.wrapping_add(1);
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

/// A difference between the cache and its store.
#[derive(Clone, Debug)]
pub struct Difference {
    kind: &'static Kind,
    at: Revision,
    cached: u64,
    stored: u64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            at,
            cached,
            stored,
        } = self;
        let resource = kind.resource();
        write!(
            f,
            "at revision {at} it had {cached} {resource}, its store {stored}"
        )?;
        match cached == stored {
            true => f.write_str(", written at other revisions or with other names"),
            false => Ok(()),
        }
    }
}

/// Compares at intervals, and resolves when the cache differs from the store.
pub(super) async fn difference(shared: &Shared) {
    let interval = shared.settings.check_interval;
    if interval.is_zero() {
        return pending().await;
    }
    loop {
        // Jitter, so that gateways that started together do not compare together.
        sleep(interval.mul_f64(rand::random_range(0.8..1.0))).await;
        match is_consistent(shared).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::warn!(%error, "the cache could not be compared with its store"),
        }
    }
}

/// Returns whether the cache holds the keys and revisions that the store had at the cache's revision. One kind is
/// compared after the other, each at the revision that the cache has reached by then.
///
/// # Errors
/// Those of the store; `Expired` when its history does not have the cache's revision.
pub(super) async fn is_consistent(shared: &Shared) -> Result<bool, Error> {
    for kind in kinds().iter() {
        let compared = compare(shared, kind).await;
        metrics::checked(kind, compared.as_ref().ok().copied());
        if !compared? {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn compare(shared: &Shared, kind: &'static Kind) -> Result<bool, Error> {
    let (at, cached) = {
        let state = shared.state.read();
        (state.revision, state.kind_store(kind).digest())
    };
    let stored = stored(&*shared.store, kind, at).await?;
    if cached != stored {
        let difference = Difference {
            kind,
            at,
            cached: cached.keys,
            stored: stored.keys,
        };
        tracing::error!(%difference, "the cache differs from its store and relists");
        shared.difference.send_replace(Some(difference));
        return Ok(false);
    }
    Ok(true)
}

/// Returns the digest of a kind's keys as they stood at a revision.
async fn stored(store: &dyn Store, kind: &'static Kind, at: Revision) -> Result<Digest, Error> {
    let mut digest = Digest::default();
    let mut range = Range {
        limit: PAGE,
        at: Some(at),
        keys_only: true,
        ..Range::all(keys::prefix(kind, ""))
    };
    loop {
        let page = store.list(range.clone()).await?;
        for entry in &page.entries {
            if let Some((_, key)) = keys::parse(&entry.key).filter(|(of, _)| *of == kind) {
                digest.add(&key, entry.revision);
            }
        }
        range.after = page.entries.last().map(|entry| entry.key.clone());
        if page.remaining == 0 || range.after.is_none() {
            return Ok(digest);
        }
        yield_now().await;
    }
}
