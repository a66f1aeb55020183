//! How the engine says a container fares, in our words. Pure.

use bollard::models::{ContainerInspectResponse, ContainerState, ContainerStateStatusEnum};
use jiff::Timestamp;

use super::identity::Identity;
use crate::runtime::Exit;

/// What containerd's users know as the code of a container whose program could not be started.
const START_ERROR: i32 = 128;
/// The exit code of a process that was killed.
pub const KILLED: i32 = 137;

/// What the engine says of one container.
#[derive(Clone, Debug, PartialEq)]
pub enum Seen {
    /// It was made, and nobody tried to start it.
    Unborn,
    /// Its process runs.
    Running(Timestamp),
    /// Its process is no more, or never was.
    Exited(Exit),
}

impl Seen {
    pub fn of(container: &ContainerInspectResponse) -> Self {
        use ContainerStateStatusEnum as Status;
        let none = ContainerState::default();
        let state = container.state.as_ref().unwrap_or(&none);
        let failure = state.error.as_deref().unwrap_or_default();
        match state.status {
            Some(Status::RUNNING | Status::PAUSED | Status::RESTARTING) => {
                Self::Running(time(state.started_at.as_deref()))
            }
            Some(Status::CREATED) if failure.is_empty() => Self::Unborn,
            Some(Status::CREATED) => {
                let made = time(container.created.as_deref());
                let exit = Exit::new(START_ERROR, made, made);
                Self::Exited(exit.because("StartError", failure))
            }
            _ => Self::Exited(exit(state)),
        }
    }
}

fn exit(state: &ContainerState) -> Exit {
    let code = state.exit_code.and_then(|code| i32::try_from(code).ok());
    let started = time(state.started_at.as_deref());
    // The engine's clock may step back; an end before its beginning would confuse everyone who reads it.
    let finished = time(state.finished_at.as_deref()).max(started);
    let exit = Exit::new(code.unwrap_or(KILLED), started, finished);
    match state.oom_killed {
        Some(true) => exit.because("OOMKilled", ""),
        _ => exit,
    }
}

/// How a container ended that the engine no longer knows.
pub fn lost() -> Exit {
    let now = Timestamp::now();
    let message = "The container could not be located: the engine no longer knows it";
    Exit::new(KILLED, now, now).because("ContainerStatusUnknown", message)
}

/// The engine's zero, in the year 1, stands for "never".
fn time(text: Option<&str>) -> Timestamp {
    let time = text.and_then(|text| text.parse::<Timestamp>().ok());
    time.filter(|time| time.as_second() > 0)
        .unwrap_or_else(Timestamp::now)
}

/// Who a container is, by its labels.
pub fn identity(container: &ContainerInspectResponse) -> Option<Identity> {
    Identity::parse(container.config.as_ref()?.labels.as_ref()?)
}

/// The container whose namespaces a container is in.
pub fn sandbox(container: &ContainerInspectResponse) -> String {
    let host = container.host_config.as_ref();
    let mode = host.and_then(|host| host.network_mode.as_deref());
    let pause = mode.and_then(|mode| mode.strip_prefix("container:"));
    pause.unwrap_or_default().to_owned()
}

/// The first address that a container has.
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

    fn seen(state: ContainerState) -> Seen {
        Seen::of(&ContainerInspectResponse {
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
    fn a_container_that_took_too_much_memory_says_so() {
        let state = ContainerState {
            oom_killed: Some(true),
            ..ended()
        };
        let Seen::Exited(exit) = seen(state) else {
            panic!("it has ended");
        };
        assert_eq!((exit.code, exit.reason()), (137, "OOMKilled"));
        assert_eq!(exit.finished.duration_since(exit.started).as_millis(), 1000);
    }

    #[test]
    fn a_container_that_was_made_and_failed_to_start_has_ended() {
        let mut state = ContainerState {
            status: Some(ContainerStateStatusEnum::CREATED),
            ..ContainerState::default()
        };
        assert_eq!(seen(state.clone()), Seen::Unborn);
        state.error = Some("exec: \"x\": executable file not found in $PATH".into());
        let Seen::Exited(exit) = seen(state) else {
            panic!("it will never run");
        };
        assert_eq!((exit.code, exit.reason()), (128, "StartError"));
    }
}
