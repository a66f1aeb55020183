//! Converts the engine's container states. Pure.

use bollard::models::{ContainerInspectResponse, ContainerState, ContainerStateStatusEnum};
use jiff::Timestamp;

use super::identity::Identity;
use crate::Exit;

/// Exit code that containerd reports for a program that could not be started.
const START_ERROR: i32 = 128;
/// Exit code of a process killed by SIGKILL.
pub const KILLED: i32 = 137;

/// State of a container in the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum EngineState {
    /// Created, but never started.
    Created,
    /// Running since this time.
    Running(Timestamp),
    /// Ended, or failed to start.
    Exited(Exit),
}

impl EngineState {
    pub fn of(container: &ContainerInspectResponse) -> Self {
        use ContainerStateStatusEnum as Status;
        let none = ContainerState::default();
        let state = container.state.as_ref().unwrap_or(&none);
        let failure = state.error.as_deref().unwrap_or_default();
        match state.status {
            Some(Status::RUNNING | Status::PAUSED | Status::RESTARTING) => {
                Self::Running(time(state.started_at.as_deref()))
            }
            Some(Status::CREATED) if failure.is_empty() => Self::Created,
            Some(Status::CREATED) => {
                let made = time(container.created.as_deref());
                let exit = Exit::new(START_ERROR, made, made);
                Self::Exited(exit.because("StartError", failure))
            }
            _ => Self::Exited(exit(state)),
        }
    }
}

/// The reason of a container's end that exceeded its memory.
pub const OOM_KILLED: &str = "OOMKilled";

fn exit(state: &ContainerState) -> Exit {
    let code = state.exit_code.and_then(|code| i32::try_from(code).ok());
    let started = time(state.started_at.as_deref());
    // The engine's clock may step back; an end must not precede its start.
    let finished = time(state.finished_at.as_deref()).max(started);
    let exit = Exit::new(code.unwrap_or(KILLED), started, finished);
    match state.oom_killed {
        Some(true) => exit.because(OOM_KILLED, ""),
        _ => exit,
    }
}

/// Returns the end of a container that the engine no longer has.
pub fn lost_exit() -> Exit {
    let now = Timestamp::now();
    let message = "The container could not be located: the container engine no longer has it";
    Exit::new(KILLED, now, now).because("ContainerStatusUnknown", message)
}

/// Parses a time of the engine, now if there is none: the engine's zero is in the year 1.
fn time(text: Option<&str>) -> Timestamp {
    let time = text.and_then(|text| text.parse::<Timestamp>().ok());
    time.filter(|time| time.as_second() > 0)
        .unwrap_or_else(Timestamp::now)
}

/// Parses the identity of a container from its labels.
pub fn identity(container: &ContainerInspectResponse) -> Option<Identity> {
    Identity::parse(container.config.as_ref()?.labels.as_ref()?)
}

/// Returns the id of the pause container whose network namespace the container shares; empty if it shares none.
pub fn sandbox(container: &ContainerInspectResponse) -> String {
    let host = container.host_config.as_ref();
    let mode = host.and_then(|host| host.network_mode.as_deref());
    let pause = mode.and_then(|mode| mode.strip_prefix("container:"));
    pause.unwrap_or_default().to_owned()
}

/// Returns the container's first address.
pub fn address(container: &ContainerInspectResponse) -> Option<std::net::Ipv4Addr> {
    let networks = container.network_settings.as_ref()?.networks.as_ref()?;
    let addresses = networks
        .values()
        .filter_map(|endpoint| endpoint.ip_address.as_ref());
    addresses.filter_map(|text| text.parse().ok()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(state: ContainerState) -> EngineState {
        EngineState::of(&ContainerInspectResponse {
            state: Some(state),
            created: Some("2026-11-21T07:00:00Z".into()),
            ..ContainerInspectResponse::default()
        })
    }

    fn ended() -> ContainerState {
        ContainerState {
            status: Some(ContainerStateStatusEnum::EXITED),
            exit_code: Some(137),
            started_at: Some("2026-11-21T07:00:01.5Z".into()),
            finished_at: Some("2026-11-21T07:00:02.5Z".into()),
            ..ContainerState::default()
        }
    }

    #[test]
    fn a_container_that_exceeded_its_memory_ends_as_oom_killed() {
        let state = ContainerState {
            oom_killed: Some(true),
            ..ended()
        };
        let EngineState::Exited(exit) = parse(state) else {
            panic!("it has ended");
        };
        assert_eq!((exit.code, exit.reason()), (137, "OOMKilled"));
        assert_eq!(exit.finished.duration_since(exit.started).as_millis(), 1000);
    }

    #[test]
    fn a_created_container_that_failed_to_start_has_exited() {
        let mut state = ContainerState {
            status: Some(ContainerStateStatusEnum::CREATED),
            ..ContainerState::default()
        };
        assert_eq!(parse(state.clone()), EngineState::Created);
        state.error = Some("exec: \"x\": executable file not found in $PATH".into());
        let EngineState::Exited(exit) = parse(state) else {
            panic!("it will never run");
        };
        assert_eq!((exit.code, exit.reason()), (128, "StartError"));
    }
}
