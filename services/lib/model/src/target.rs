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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_one_version_of_one_object_and_reads_as_its_name() {
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
