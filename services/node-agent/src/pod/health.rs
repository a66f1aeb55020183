//! The results of a container's probes and of its postStart hook. Pure.

use std::fmt;

use setpoint_proto::core::{Container, Probe};

/// The kind of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// Restarts the container when it fails.
    Liveness,
    /// Decides whether the container is ready.
    Readiness,
    /// Delays the other probes until it passes, and restarts the container when it fails.
    Startup,
}

impl ProbeKind {
    /// Returns the probe of this kind.
    pub fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            Self::Liveness => container.liveness_probe.as_ref(),
            Self::Readiness => container.readiness_probe.as_ref(),
            Self::Startup => container.startup_probe.as_ref(),
        }
    }
}

impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Liveness => "Liveness",
            Self::Readiness => "Readiness",
            Self::Startup => "Startup",
        })
    }
}

/// The result of a probe so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// No threshold was reached yet.
    #[default]
    Unknown,
    /// The probe passes.
    Passing,
    /// The probe fails.
    Failing,
}

/// The results of a container's probes. The result of a probe that it does not have means nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeResults {
    /// The result of the liveness probe.
    pub liveness: Health,
    /// The result of the readiness probe.
    pub readiness: Health,
    /// The result of the startup probe.
    pub startup: Health,
}

impl ProbeResults {
    /// Returns the result of the probe of a kind.
    pub fn of(&mut self, kind: ProbeKind) -> &mut Health {
        match kind {
            ProbeKind::Liveness => &mut self.liveness,
            ProbeKind::Readiness => &mut self.readiness,
            ProbeKind::Startup => &mut self.startup,
        }
    }
}

/// Returns whether a container has a probe.
pub fn has_probe(container: &Container) -> bool {
    let kinds = [
        ProbeKind::Liveness,
        ProbeKind::Readiness,
        ProbeKind::Startup,
    ];
    kinds.into_iter().any(|kind| kind.of(container).is_some())
}

/// State of a container's postStart hook. A hook that has succeeded has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostStart {
    /// It is due or runs.
    Running,
    /// It has failed, so that the container is killed.
    Failed,
}
