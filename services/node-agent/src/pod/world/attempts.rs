//! The attempts at a container, by the runtime or by the status that was reported last.

#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use jiff::Timestamp;
use setpoint_proto::core::ContainerStatus;
use setpoint_proto::meta::Time;
use setpoint_runtime::{self as runtime, State};

use crate::pod::restart::Ended;

/// The exit code that is reported for a container whose end was not observed.
pub const LOST_EXIT_CODE: i32 = 137;

/// The attempts at one container so far.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptHistory {
    /// Number of the next attempt.
    pub next: u32,
    /// The newest attempt.
    pub last: LastAttempt,
}

/// State of the newest attempt at a container.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LastAttempt {
    /// There was no attempt.
    Never,
    /// Requested, but its process does not run yet.
    Starting,
    /// Its process runs.
    Running,
    /// Its process has ended.
    Ended(Ended),
}

impl LastAttempt {
    /// Returns the state of an attempt that the runtime knows.
    pub(super) fn of(container: &runtime::Container) -> Self {
        match &container.state {
            State::Starting => Self::Starting,
            State::Running { .. } => Self::Running,
            State::Exited(exit) => Self::Ended(Ended {
                code: exit.code,
                started: exit.started,
                finished: exit.finished,
                observed: exit.observed,
                backoff: container.backoff,
            }),
        }
    }

    /// Returns the state of an attempt that the runtime does not know, by its status.
    pub(super) fn reported(status: &ContainerStatus, now: Timestamp) -> Self {
        let terminated = [&status.state, &status.last_state]
            .into_iter()
            .find_map(|state| state.terminated.as_ref())
            .filter(|_| status.state.running.is_none());
        let time = |time: &Time| time.timestamp().unwrap_or(now);
        Self::Ended(Ended {
            code: terminated.map_or(LOST_EXIT_CODE, |end| end.exit_code),
            started: terminated.map_or(now, |end| time(&end.started_at)),
            finished: terminated.map_or(now, |end| time(&end.finished_at)),
            observed: None,
            backoff: Duration::ZERO,
        })
    }
}
