//! The status of one container.

use setpoint_model::Key;
use setpoint_model::pod::is_sidecar;
use setpoint_proto::core::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, ResourceRequirements,
};
use setpoint_runtime::cri::Cri;
use setpoint_runtime::{self as runtime, ContainerId, Exit, Runtime as _, State};

use crate::pod::duration;
use crate::pod::ephemeral;
use crate::pod::health::PostStart;
use crate::pod::world::{AssignedPod, LOST_EXIT_CODE, LastAttempt, WaitingReason, World};

/// Returns the status of a container or init container.
pub fn status(pod: &AssignedPod, world: &World, container: &Container) -> ContainerStatus {
    let sandbox = world.sandbox();
    let mut newest = sandbox
        .into_iter()
        .flat_map(|sandbox| sandbox.attempts(&container.name).rev());
    let reported = world.reported(&container.name);
    let mut status = match newest.next() {
        Some(latest) => of_attempt(pod, world, container, latest, newest.next(), reported),
        None => without_attempt(pod, world, container, reported),
    };
    back_off(pod, world, container, &mut status);
    status
}

/// Returns the status of an ephemeral container, which is neither ready nor restarted.
pub fn ephemeral_status(
    pod: &AssignedPod,
    world: &World,
    container: &Container,
) -> ContainerStatus {
    ContainerStatus {
        ready: false,
        started: None,
        ..status(pod, world, container)
    }
}

fn of_attempt(
    pod: &AssignedPod,
    world: &World,
    container: &Container,
    latest: &runtime::Container,
    before: Option<&runtime::Container>,
    reported: Option<&ContainerStatus>,
) -> ContainerStatus {
    let last_state = match before.map(|before| &before.state) {
        Some(State::Exited(exit)) => terminated(pod.id_of(before.unwrap_or(latest)), exit),
        _ => reported
            .map(|reported| last_of(world, reported, &latest.id))
            .unwrap_or_default(),
    };
    ContainerStatus {
        name: latest.id.name.clone(),
        state: state(pod, world, latest),
        last_state,
        ready: is_ready(pod, world, container, latest),
        restart_count: i32::try_from(latest.id.attempt).unwrap_or(i32::MAX),
        image: latest.image.clone(),
        image_id: pod.image_id_of(latest),
        container_id: pod.id_of(latest),
        started: Some(pod.has_started(world, container)),
        resources: Some(resources(container, latest)),
        allocated_resources: container.resources.requests.clone(),
        ..ContainerStatus::default()
    }
}

/// Returns the resources that a running container has, or those that are allocated to it.
fn resources(container: &Container, latest: &runtime::Container) -> ResourceRequirements {
    let has = latest.resources.as_ref();
    let has = has.filter(|_| matches!(latest.state, State::Running { .. }));
    has.unwrap_or(&container.resources).clone()
}

/// Returns whether a container is ready. An init container that is no sidecar is once it has succeeded.
fn is_ready(
    pod: &AssignedPod,
    world: &World,
    container: &Container,
    latest: &runtime::Container,
) -> bool {
    match &latest.state {
        _ if !pod.is_init(&container.name) || is_sidecar(container) => {
            pod.is_container_ready(world, container)
        }
        State::Exited(exit) => exit.code == 0 && !world.is_outdated(latest),
        _ => false,
    }
}

/// Returns the state of the previous attempt from the last reported status, if the runtime no longer has that attempt.
fn last_of(world: &World, reported: &ContainerStatus, latest: &ContainerId) -> ContainerState {
    if u32::try_from(reported.restart_count) == Ok(latest.attempt) {
        return reported.last_state.clone();
    }
    match &reported.state {
        state if state.terminated.is_some() => state.clone(),
        state if state.running.is_some() => lost(world, reported),
        _ => reported.last_state.clone(),
    }
}

/// Returns the terminated state of a container that was reported as running and that the runtime does not know.
fn lost(world: &World, reported: &ContainerStatus) -> ContainerState {
    let started = reported
        .state
        .running
        .as_ref()
        .map(|running| running.started_at);
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: LOST_EXIT_CODE,
            reason: "ContainerStatusUnknown".to_owned(),
            message: "The container could not be located: the container runtime no longer has it"
                .to_owned(),
            started_at: started.unwrap_or_default(),
            finished_at: world.now.into(),
            container_id: reported.container_id.clone(),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

fn state(pod: &AssignedPod, world: &World, container: &runtime::Container) -> ContainerState {
    let starts = world.post_starts.get(&container.id) == Some(&PostStart::Running);
    match &container.state {
        State::Starting => waiting("ContainerCreating", ""),
        // The kubelet reports a container as running once its postStart hook has ended.
        State::Running { stopping: None, .. } if starts => waiting("ContainerCreating", ""),
        State::Running { since, .. } => ContainerState {
            running: Some(ContainerStateRunning {
                started_at: (*since).into(),
            }),
            ..ContainerState::default()
        },
        State::Exited(exit) => terminated(pod.id_of(container), exit),
    }
}

fn without_attempt(
    pod: &AssignedPod,
    world: &World,
    container: &Container,
    reported: Option<&ContainerStatus>,
) -> ContainerStatus {
    let mut status = reported.cloned().unwrap_or_else(|| ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone(),
        ..ContainerStatus::default()
    });
    status.ready = false;
    status.started = Some(false);
    match world.history(&container.name).last {
        LastAttempt::Ended(_) if status.state.running.is_some() => {
            status.state = lost(world, &status)
        }
        LastAttempt::Ended(_) => {}
        _ => status.state = not_yet(pod, world, container),
    }
    status
}

fn not_yet(pod: &AssignedPod, world: &World, container: &Container) -> ContainerState {
    match world.waiting_reasons.get(&container.name) {
        Some(WaitingReason { reason, message }) => waiting(reason, message),
        // The kubelet reports `PodInitializing` only for Pods with init containers.
        None if !pod.object.spec.init_containers.is_empty() => waiting("PodInitializing", ""),
        None => waiting("ContainerCreating", ""),
    }
}

/// Reports a container that ended and will be restarted as waiting, with its end as the last state.
fn back_off(pod: &AssignedPod, world: &World, container: &Container, status: &mut ContainerStatus) {
    let LastAttempt::Ended(ended) = world.history(&container.name).last else {
        return;
    };
    let is_ephemeral = ephemeral::named(&pod.object.spec, &container.name).is_some();
    let outdated = world.outdated(&container.name);
    if pod.is_ending(world)
        || is_ephemeral
        || !pod.restarts(world, container, &ended)
        || status.state.terminated.is_none()
    {
        return;
    }
    if let Some(WaitingReason { reason, message }) = world.waiting_reasons.get(&container.name) {
        status.last_state = std::mem::replace(&mut status.state, waiting(reason, message));
        return;
    }
    if outdated.is_some_and(|outdated| !world.restarts_all(outdated)) {
        let message = "The container is restarted because RestartAllContainers in place";
        let waiting = waiting("RestartingAllContainers", message);
        status.last_state = std::mem::replace(&mut status.state, waiting);
        return;
    }
    let message = format!(
        "back-off {} restarting failed container={} pod={}",
        duration::print(ended.effective_backoff()),
        container.name,
        pod.label(),
    );
    status.last_state = std::mem::replace(&mut status.state, waiting("CrashLoopBackOff", &message));
}

fn waiting(reason: &str, message: &str) -> ContainerState {
    ContainerState {
        waiting: Some(ContainerStateWaiting {
            reason: reason.to_owned(),
            message: message.to_owned(),
        }),
        ..ContainerState::default()
    }
}

fn terminated(container_id: String, exit: &Exit) -> ContainerState {
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: exit.code,
            reason: exit.reason().to_owned(),
            message: exit.message.clone(),
            started_at: exit.started.into(),
            finished_at: exit.finished.into(),
            container_id,
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}

impl AssignedPod {
    /// Returns the id of a container's image: as the CRI has it, with the scheme of other runtimes.
    fn image_id_of(&self, container: &runtime::Container) -> String {
        match (container.image_id.as_str(), self.runtime) {
            ("", _) => format!("{}://{}", self.scheme, container.image),
            (id, Cri::NAME) => id.to_owned(),
            (id, _) => format!("{}://{id}", self.scheme),
        }
    }

    /// Returns the container's id as Kubernetes formats it: `<runtime>://<id>`.
    pub fn id_of(&self, container: &runtime::Container) -> String {
        match container.runtime_id.as_str() {
            "" => format!("{}://{}", self.scheme, container.id),
            runtime_id => format!("{}://{runtime_id}", self.scheme),
        }
    }

    /// Returns the Pod's name as the kubelet formats it in messages: `web_default(5be0…)`.
    pub fn label(&self) -> String {
        let meta = &self.object.metadata;
        runtime::pod_label(&Key::of(meta), &meta.uid)
    }

    /// Returns whether a container is an init container.
    pub fn is_init(&self, name: &str) -> bool {
        let mut init = self.object.spec.init_containers.iter();
        init.any(|container| container.name == name)
    }
}
