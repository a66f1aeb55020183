//! Fences: the condition of a write that a lease term is current.

use std::fmt;
use std::str::FromStr;

/// A term of a lease. A write that carries it commits only while that term is current.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fence {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease; empty for no condition.
    pub lease: String,
    /// The term. It is incremented with each new holder.
    pub term: u64,
}

/// The error of text that is not `<namespace>/<lease>/<term>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected <namespace>/<lease>/<term>")]
pub struct Malformed;

impl Fence {
    /// Returns a fence without a condition, for processes without leader election.
    pub fn open() -> Self {
        Self::default()
    }

    /// Returns whether it has no condition.
    pub const fn is_open(&self) -> bool {
        self.lease.is_empty()
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.lease, self.term)
    }
}

impl FromStr for Fence {
    type Err = Malformed;

    fn from_str(text: &str) -> Result<Self, Malformed> {
        let mut parts = text.split('/');
        let mut part = || parts.next().ok_or(Malformed);
        let (namespace, lease, term) = (part()?, part()?, part()?);
        if lease.is_empty() || part().is_ok() {
            return Err(Malformed);
        }
        Ok(Self {
            namespace: namespace.to_owned(),
            lease: lease.to_owned(),
            term: term.parse().map_err(|_| Malformed)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_parsed_from_its_display() {
        let fence: Fence = "setpoint-system/scheduler/7".parse().unwrap();
        assert_eq!((fence.lease.as_str(), fence.term), ("scheduler", 7));
        assert_eq!(fence.to_string(), "setpoint-system/scheduler/7");
        assert!(!fence.is_open() && Fence::open().is_open());
    }

    #[test]
    fn malformed_fences_are_rejected() {
        for text in ["", "a/b", "a//7", "a/b/x", "a/b/-1", "a/b/7/"] {
            assert_eq!(text.parse::<Fence>(), Err(Malformed), "{text}");
        }
    }
}
