//! Conflicts between an applied configuration and other managers.

use std::collections::BTreeMap;
use std::fmt;

use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, Reason};

use super::managers::{ManagerId, Operation};
use super::set::FieldSet;

/// The reason of the cause of a conflict.
const CAUSE: &str = "FieldManagerConflict";

/// A field that another manager owns, and that an applied configuration would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: ManagerId,
    /// The path of the field, for example `.spec.replicas`.
    pub path: String,
}

/// All conflicts of an applied configuration, sorted by manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conflicts(pub Vec<Conflict>);

/// The error of applying a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// Other managers own fields that it would change.
    Conflicts(Conflicts),
    /// The configuration does not fit the kind.
    Unfit(String),
    /// It cannot be merged.
    Malformed(String),
}

impl Conflicts {
    pub(super) fn of(sets: &BTreeMap<ManagerId, FieldSet>) -> Self {
        let mut conflicts = Vec::new();
        for (manager, set) in sets {
            set.for_each(&mut |path| {
                let manager = manager.clone();
                conflicts.push(Conflict { manager, path });
            });
        }
        Self(conflicts)
    }

    fn causes(&self) -> Vec<StatusCause> {
        let cause = |conflict: &Conflict| StatusCause {
            reason: CAUSE.into(),
            message: format!("conflict with {}", conflict.manager),
            field: conflict.path.clone(),
        };
        self.0.iter().map(cause).collect()
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [one] = self.0.as_slice() {
            let (manager, path) = (&one.manager, &one.path);
            return write!(
                f,
                "Apply failed with 1 conflict: conflict with {manager}: {path}"
            );
        }
        let mut lines = Vec::new();
        for of_one in self.0.chunk_by(|one, two| one.manager == two.manager) {
            let manager = of_one.first().map(|one| &one.manager);
            lines.extend(manager.map(|manager| format!("conflicts with {manager}:")));
            lines.extend(of_one.iter().map(|one| format!("- {}", one.path)));
        }
        let (count, lines) = (self.0.len(), lines.join("\n"));
        write!(f, "Apply failed with {count} conflicts: {lines}")
    }
}

impl fmt::Display for ManagerId {
    /// Writes the manager as messages name it: `"kubectl" with subresource "scale" using apps/v1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.manager)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        match self.operation {
            Operation::Apply => Ok(()),
            Operation::Update => write!(f, " using {}", self.api_version),
        }
    }
}

impl From<Conflicts> for ApiError {
    fn from(conflicts: Conflicts) -> Self {
        Self::new(Reason::Conflict, conflicts.to_string()).with_details(StatusDetails {
            causes: conflicts.causes(),
            ..Default::default()
        })
    }
}
