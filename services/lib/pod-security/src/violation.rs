//! The parts of a Pod that a level does not allow.

use std::fmt;

/// A part of a Pod that a check does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// In few words, such as `host namespaces`.
    pub reason: String,
    /// The values and containers in question; empty if there is nothing to say.
    pub detail: String,
}

impl Violation {
    pub(crate) fn new(reason: impl Into<String>, detail: String) -> Self {
        Self {
            reason: reason.into(),
            detail,
        }
    }
}

/// The violations of a Pod, in the order of the checks. Their text has the details, as the answer to a request does:
/// `host namespaces (hostPID=true), privileged (container "a" must not set …)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Returns whether the Pod is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the reasons without details, by which Pods of a namespace are grouped.
    pub fn reasons(&self) -> String {
        let reasons: Vec<_> = self.0.iter().map(|one| one.reason.as_str()).collect();
        reasons.join(", ")
    }
}

impl FromIterator<Violation> for Violations {
    fn from_iter<I: IntoIterator<Item = Violation>>(violations: I) -> Self {
        Self(violations.into_iter().collect())
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, violation) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{}", violation.reason)?;
            if !violation.detail.is_empty() {
                write!(f, " ({})", violation.detail)?;
            }
        }
        Ok(())
    }
}
