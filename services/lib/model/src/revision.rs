//! When an object was written, relative to all other writes.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use setpoint_proto::meta::ObjectMeta;

/// A moment in the history of the store: opaque but ordered, `0` before everything.
///
/// Only the gateway's store may look inside or calculate with it: it need not be the revision of etcd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(u64);

impl Revision {
    /// For the store and for tests alone.
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// For the store and for tests alone.
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// The object's `resourceVersion`; `0` where it has none that can be read.
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
    fn revisions_are_ordered_as_numbers_not_as_text() {
        let parse = |text: &str| text.parse::<Revision>().unwrap();
        assert!(parse("9") < parse("10"));
        assert_eq!(parse("10").to_string(), "10");
        assert_eq!(parse("10").raw(), 10);
    }

    #[test]
    fn an_objects_revision_is_its_resource_version() {
        let meta = ObjectMeta {
            resource_version: "10".into(),
            ..Default::default()
        };
        assert_eq!(Revision::of(&meta), Revision::from_raw(10));
    }

    #[test]
    fn an_object_that_was_never_stored_is_before_everything() {
        assert_eq!(Revision::of(&ObjectMeta::default()), Revision::default());
    }
}
