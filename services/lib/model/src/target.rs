//! The one version of the one object that a write is meant for.

use std::fmt;

use crate::{Key, Meta, Revision};

/// Names an object so exactly that a write cannot hit another, nor one that has changed since it was looked at.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Where it is.
    pub key: Key,
    /// Tells it from another object of the same name.
    pub uid: String,
    /// Tells it from its own later versions.
    pub revision: Revision,
}

/// Its name alone: plans are read by people, who know objects by nothing else.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.key, f)
    }
}

impl Target {
    /// The object as it was seen.
    pub fn of(meta: &Meta) -> Self {
        Self {
            key: meta.key.clone(),
            uid: meta.uid.clone(),
            revision: meta.revision,
        }
    }
}
