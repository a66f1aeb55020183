//! The consistency check: a comparison of the cache with its store.
//!
//! No later revision reveals that a change was lost, or that the history was replaced by another one while the store
//! could not be reached. Therefore the keys of each kind, and the revisions of their last writes, are compared at
//! intervals, at the revision of the cache.

use std::collections::HashMap;
use std::fmt;
use std::future::pending;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use setpoint_codec::Kind;
use setpoint_model::{Key, Revision};
use tokio::task::yield_now;
use tokio::time::sleep;

use super::reflector::PAGE;
use super::{Shared, metrics};
use crate::{Error, Range, keys};

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

/// The digests of kinds, by the folder of each.
type Digests = HashMap<&'static str, Digest>;

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
/// compared after the other, each at the revision that the cache has reached by then, so that none holds the lock for
/// long.
///
/// # Errors
/// The errors of the store; `Expired` when its history does not have the cache's revision.
async fn is_consistent(shared: &Shared) -> Result<bool, Error> {
    for kind in shared.table.iter() {
        let (at, cached) = {
            let state = shared.state.read();
            let Ok(kind_store) = state.kind_store(kind) else {
                // Its definition has been deleted in the meantime.
                continue;
            };
            (state.revision, kind_store.digest())
        };
        let stored = stored(shared, keys::prefix(kind, ""), at).await;
        let stored = stored.inspect_err(|_| metrics::checked(kind, None))?;
        if !equal(shared, at, kind, cached, &stored) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// As [`is_consistent`], for a cache that does not advance meanwhile: all kinds are compared in one scan.
///
/// The cache follows its store only when this has succeeded. One request for each kind would take longer than a busy
/// etcd answers without a timeout, and each attempt begins anew.
///
/// # Errors
/// As [`is_consistent`].
pub(super) async fn is_unchanged(shared: &Shared) -> Result<bool, Error> {
    let (at, cached) = {
        let state = shared.state.read();
        let digests = shared.table.iter().filter_map(|kind| {
            let kind_store = state.kind_store(kind).ok()?;
            Some((kind, kind_store.digest()))
        });
        (state.revision, digests.collect::<Vec<_>>())
    };
    let stored = stored(shared, keys::ROOT.to_owned(), at).await;
    let failed = |_: &Error| {
        let kinds = cached.iter();
        kinds.for_each(|(kind, _)| metrics::checked(kind, None));
    };
    let stored = stored.inspect_err(failed)?;
    let mut cached = cached.into_iter();
    Ok(cached.all(|(kind, digest)| equal(shared, at, kind, digest, &stored)))
}

/// Compares a kind, and reports the outcome.
fn equal(
    shared: &Shared,
    at: Revision,
    kind: &'static Kind,
    cached: Digest,
    stored: &Digests,
) -> bool {
    let stored = stored.get(kind.stored_as.as_str()).copied();
    let stored = stored.unwrap_or_default();
    metrics::checked(kind, Some(cached == stored));
    if cached == stored {
        return true;
    }
    let difference = Difference {
        kind,
        at,
        cached: cached.keys,
        stored: stored.keys,
    };
    tracing::error!(%difference, "the cache differs from its store and relists");
    shared.difference.send_replace(Some(difference));
    false
}

/// Returns the digests of the keys below a prefix as they stood at a revision.
async fn stored(shared: &Shared, prefix: String, at: Revision) -> Result<Digests, Error> {
    let custom = shared.table.custom();
    let mut digests = Digests::new();
    let mut range = Range {
        limit: PAGE,
        at: Some(at),
        keys_only: true,
        ..Range::all(prefix)
    };
    loop {
        let page = shared.store.list(range.clone()).await?;
        for entry in &page.entries {
            if let Some((kind, key)) = keys::parse(&custom, &entry.key) {
                let digest = digests.entry(kind.stored_as.as_str()).or_default();
                digest.add(&key, entry.revision);
            }
        }
        range.after = page.entries.last().map(|entry| entry.key.clone());
        if page.remaining == 0 || range.after.is_none() {
            return Ok(digests);
        }
        yield_now().await;
    }
}
