//! The target of a conditional write.

use std::fmt;

use crate::{Key, Meta, Revision};

/// A version of an object: the precondition of a write that must not affect another object or a later version.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    /// Namespace and name.
    pub key: Key,
    /// The uid, which another object of the same name does not have.
    pub uid: String,
    /// The revision of the version.
    pub revision: Revision,
}

/// Writes namespace and name only, since plans are printed for users.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.key, f)
    }
}

impl Target {
    /// Returns the target for the observed version of an object.
    pub fn of(meta: &Meta) -> Self {
        Self {
            key: meta.key.clone(),
            uid: meta.uid.clone(),
            revision: meta.revision,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_differ_by_key_uid_and_revision_and_are_printed_as_their_key() {
        let meta = Meta {
            key: Key::new("default", "web"),
            uid: "u1".into(),
            revision: Revision::from_raw(7),
            ..Default::default()
        };
        let target = Target::of(&meta);
        assert_eq!(format!("{target:?}"), "default/web");
        for other in [
            Meta {
                key: Key::new("default", "db"),
                ..meta.clone()
            },
            Meta {
                uid: "u2".into(),
                ..meta.clone()
            },
            Meta {
                revision: Revision::from_raw(8),
                ..meta
            },
        ] {
            assert_ne!(Target::of(&other), target);
        }
    }
}
