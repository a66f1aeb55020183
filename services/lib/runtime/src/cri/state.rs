//! Converts the runtime's states of containers. Pure.

use jiff::Timestamp;
use k8s_cri::v1::{ContainerState, ContainerStatus};

use crate::{Exit, State};

/// Exit code of a process killed by SIGKILL.
const KILLED: i32 = 137;

/// Returns the state of a container; `None` for one that was created and never started, and for one whose state the
/// runtime does not know.
pub fn of(status: &ContainerStatus) -> Option<State> {
    match status.state() {
        ContainerState::ContainerRunning => Some(State::Running {
            since: time(status.started_at),
            stopping: None,
        }),
        ContainerState::ContainerExited => Some(State::Exited(exit(status))),
        ContainerState::ContainerCreated | ContainerState::ContainerUnknown => None,
    }
}

fn exit(status: &ContainerStatus) -> Exit {
    // One that could not be started has never begun.
    let began = match status.started_at {
        0 => status.created_at,
        started => started,
    };
    let started = time(began);
    // The runtime's clock may step back; an end must not precede its start.
    let finished = time(status.finished_at).max(started);
    let exit = Exit::new(status.exit_code, started, finished);
    match status.reason.as_str() {
        // These follow from the code.
        "" | "Completed" | "Error" => Exit {
            message: status.message.clone(),
            ..exit
        },
        reason => exit.because(reason, &status.message),
    }
}

/// Returns the end of a container that the runtime no longer has.
pub fn lost() -> Exit {
    let now = Timestamp::now();
    let message = "The container could not be located: the container runtime no longer has it";
    Exit::new(KILLED, now, now).because("ContainerStatusUnknown", message)
}

/// Returns a time in nanoseconds since the epoch; now if there is none.
fn time(nanoseconds: i64) -> Timestamp {
    match nanoseconds {
        ..=0 => Timestamp::now(),
        _ => Timestamp::from_nanosecond(nanoseconds.into()).unwrap_or_else(|_| Timestamp::now()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: i32, reason: &str) -> Exit {
        let status = ContainerStatus {
            state: ContainerState::ContainerExited.into(),
            created_at: 1_000_000_000,
            started_at: 2_000_000_000,
            finished_at: 3_000_000_000,
            exit_code: code,
            reason: reason.into(),
            ..ContainerStatus::default()
        };
        let Some(State::Exited(exit)) = of(&status) else {
            panic!("it has ended");
        };
        exit
    }

    #[test]
    fn an_end_has_the_reason_of_the_runtime_only_if_it_says_more_than_the_code() {
        let exit = ended(137, "OOMKilled");
        assert_eq!((exit.code, exit.reason()), (137, "OOMKilled"));
        assert_eq!(exit.finished.duration_since(exit.started).as_secs(), 1);
        for (code, reason) in [(0, "Completed"), (3, "Error")] {
            let exit = ended(code, reason);
            assert_eq!((exit.reason.as_deref(), exit.reason()), (None, reason));
        }
    }

    #[test]
    fn a_container_that_was_never_started_has_no_state() {
        let status = ContainerStatus::default();
        assert_eq!(status.state(), ContainerState::ContainerCreated);
        assert_eq!(of(&status), None);
    }
}
