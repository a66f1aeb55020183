//! Decodes entries and changes of the store into objects, outside of the cache's lock.

use std::sync::Arc;

use setpoint_codec::{CustomKinds, Kind};
use setpoint_model::{Key, Revision};
use setpoint_proto::Cause;

use super::definitions::Definitions;
use super::kind_store::KindStore;
use super::unreadable::{self, Unreadable};
use super::{Cached, metrics};
use crate::{Batch, Change, Entry, Form, keys};

/// The changes of one revision.
pub(super) struct DecodedBatch {
    pub revision: Revision,
    pub changes: Vec<DecodedChange>,
    /// The custom kinds from this revision on, if a definition has changed.
    pub custom: Option<Arc<CustomKinds>>,
    /// The kinds that are new among them, with their objects at this revision: some may have outlived a former
    /// definition.
    pub added: Vec<(&'static Kind, KindStore)>,
}

/// A change of one object of a known kind.
pub(super) struct DecodedChange {
    pub kind: &'static Kind,
    pub key: Key,
    pub new: Stored,
    /// The cause of a deletion.
    pub cause: Option<Cause>,
}

/// The state of a key.
pub(super) enum Stored {
    /// The key does not exist.
    Nothing,
    Object(Arc<Cached>),
    /// A value that cannot be decoded. It replaces the object that was there before.
    Unreadable(Unreadable),
}

/// Decodes an entry; `None` if its kind is not known or its value cannot be decoded.
pub(super) fn object(custom: &CustomKinds, entry: &Entry) -> Option<Arc<Cached>> {
    match stored(custom, entry)? {
        (_, _, Stored::Object(object)) => Some(object),
        _ => None,
    }
}

/// Decodes an entry; `None` if its kind is not known.
pub(super) fn stored(custom: &CustomKinds, entry: &Entry) -> Option<(&'static Kind, Key, Stored)> {
    let (kind, key) = keys::parse(custom, &entry.key)?;
    let stored = match read(kind, &key, entry) {
        Ok(object) => Stored::Object(Arc::new(object)),
        Err(why) => {
            tracing::error!(key = entry.key, why, "a stored value cannot be read");
            metrics::undecodable(kind);
            Stored::Unreadable(Unreadable {
                key: key.clone(),
                revision: entry.revision,
                why,
            })
        }
    };
    Some((kind, key, stored))
}

fn read(kind: &'static Kind, key: &Key, entry: &Entry) -> Result<Cached, String> {
    if let Form::Untransformable(why) = &entry.form {
        return Err(unreadable::untransformable(entry.revision, why));
    }
    let read = Cached::read(kind, key.clone(), entry);
    read.map_err(|error| unreadable::undecodable(entry.revision, &error))
}

/// Decodes the changes of a revision. Those of unknown kinds are left out.
pub(super) fn batch(definitions: &mut Definitions, batch: Batch) -> DecodedBatch {
    let revision = batch.revision;
    let mut redefined = false;
    let changes = batch.changes.into_iter().filter_map(|change| {
        let change = decode_change(definitions.custom(), change, revision)?;
        redefined |= definitions.follow(&change);
        Some(change)
    });
    DecodedBatch {
        revision,
        changes: changes.collect(),
        custom: redefined.then(|| definitions.custom().clone()),
        added: Vec::new(),
    }
}

fn decode_change(
    custom: &CustomKinds,
    change: Change,
    revision: Revision,
) -> Option<DecodedChange> {
    let (kind, key, new) = match change.value {
        None => {
            let (kind, key) = keys::parse(custom, &change.key)?;
            (kind, key, Stored::Nothing)
        }
        Some(value) => {
            let entry = Entry {
                key: change.key,
                value,
                revision,
                form: change.form,
            };
            stored(custom, &entry)?
        }
    };
    Some(DecodedChange {
        kind,
        key,
        new,
        cause: change.cause,
    })
}
