//! Revisions of the store.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use setpoint_proto::meta::ObjectMeta;

/// A revision of the store: opaque and ordered. 0 precedes all others.
///
/// Only the store may use the number in it: it need not be the revision of etcd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u64);

impl Revision {
    /// For the store and tests only.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// For the store and tests only.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Returns the `resourceVersion` of an object; 0 if it is missing or invalid.
    pub fn of(meta: &ObjectMeta) -> Self {
        meta.resource_version.parse().unwrap_or_default()
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Revision {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_are_ordered_as_numbers() {
        let parse = |text: &str| text.parse::<Revision>().unwrap();
        assert!(parse("9") < parse("10"));
        assert_eq!(parse("10").to_string(), "10");
        assert_eq!(parse("10").raw(), 10);
    }

    #[test]
    fn the_revision_of_an_object_is_its_resource_version() {
        let meta = ObjectMeta {
            resource_version: "10".into(),
            ..Default::default()
        };
        assert_eq!(Revision::of(&meta), Revision::from_raw(10));
    }

    #[test]
    fn the_revision_of_an_object_that_was_never_stored_is_zero() {
        assert_eq!(Revision::of(&ObjectMeta::default()), Revision::default());
    }
}
