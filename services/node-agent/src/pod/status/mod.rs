//! Computes the status of a Pod, in the kubelet's words. Pure.
//!
//! ```text
//! Pending ─▶ Running ─▶ Succeeded | Failed        a reported phase is never reverted
//! ```

mod conditions;
mod container;

use setpoint_model::pod::is_sidecar;
use setpoint_model::pod::{is_ready, is_terminal};
use setpoint_proto::core::{
    Container, ContainerState, ContainerStateTerminated, ContainerStatus, HostIp, Pod, PodIp,
    PodSpec, PodStatus,
};
use setpoint_runtime::Runtime as _;
use setpoint_runtime::cri::Cri;

use crate::pod::ephemeral;
use crate::pod::pod_resources;
use crate::pod::rejection::Rejection;
use crate::pod::restart;
use crate::pod::world::{AssignedPod, LOST_EXIT_CODE, World};

/// The kubelet's reason and message for a Pod whose deadline is exceeded.
pub const DEADLINE: &str = "DeadlineExceeded";
pub const DEADLINE_MESSAGE: &str = "Pod was active on the node longer than the specified deadline";

/// The start of the message of a rejected Pod.
pub const REJECTED: &str = "Pod was rejected: ";

/// Returns the Pod's status if it differs from the last reported one.
pub fn status(world: &World) -> Option<PodStatus> {
    let pod = world.pod.as_ref()?;
    let reported = &pod.object.status;
    if is_terminal(&pod.object) {
        return None;
    }
    let status = match &pod.admission {
        Err(rejection) => pod.rejected(world, rejection),
        Ok(_) => pod.status(world),
    };
    (status != *reported).then_some(status)
}

impl World {
    /// Returns whether the Pod has reached its target state: ready, terminal, or gone. Until it has, container state
    /// changes are attributed to the request that started the Pod.
    pub fn has_converged(&self) -> bool {
        let Some(bound) = &self.pod else {
            return self.sandboxes.is_empty();
        };
        let mut pod = Pod {
            metadata: bound.object.metadata.clone(),
            status: bound.object.status.clone(),
            ..Pod::default()
        };
        if let Some(status) = status(self) {
            pod.status = status;
        }
        let ending = pod.metadata.deletion_timestamp.is_some();
        !ending && (is_ready(&pod) || is_terminal(&pod))
    }
}

impl AssignedPod {
    fn rejected(&self, world: &World, rejection: &Rejection) -> PodStatus {
        PodStatus {
            phase: "Failed".to_owned(),
            reason: rejection.reason(),
            message: format!("{REJECTED}{}", rejection.message()),
            start_time: Some(world.now.into()),
            observed_generation: self.object.metadata.generation,
            ..self.object.status.clone()
        }
    }

    fn status(&self, world: &World) -> PodStatus {
        let reported = &self.object.status;
        let [init, main, ephemeral] = self.container_statuses(world);
        let mut status = PodStatus {
            phase: self.phase(world, &init, &main).to_owned(),
            host_ip: self.host_ip.clone(),
            host_ips: vec![HostIp {
                ip: self.host_ip.clone(),
            }],
            start_time: reported.start_time.or_else(|| Some(world.now.into())),
            init_container_statuses: init,
            container_statuses: main,
            ephemeral_container_statuses: ephemeral,
            observed_generation: self.object.metadata.generation,
            ..reported.clone()
        };
        self.set_resources(world, &mut status);
        self.set_address(world, &mut status);
        if self.has_stopped(world) && !self.is_deleting() {
            set_failed(world, &mut status);
        }
        status.conditions = conditions::conditions(self, world, &status);
        status
    }

    /// Sets the address of the Pod. Where the runtime assigns it, a Pod whose sandbox is yet to be made has none.
    fn set_address(&self, world: &World, status: &mut PodStatus) {
        let assigns = self.runtime == Cri::NAME && !self.object.spec.host_network;
        let address = match world.sandbox() {
            Some(sandbox) => Some(sandbox.config.ip).filter(|ip| !ip.is_unspecified()),
            None if assigns && !self.is_ending(world) => None,
            None => return,
        };
        let ip = address.map(|ip| ip.to_string());
        status.pod_ips = ip.iter().cloned().map(|ip| PodIp { ip }).collect();
        status.pod_ip = ip.unwrap_or_default();
    }

    /// Returns the statuses of init, main and ephemeral containers.
    fn container_statuses(&self, world: &World) -> [Vec<ContainerStatus>; 3] {
        let spec = &self.object.spec;
        let of = |container| container::status(self, world, container);
        let mut init: Vec<_> = spec.init_containers.iter().map(of).collect();
        let mut main: Vec<_> = spec.containers.iter().map(of).collect();
        let added = ephemeral::containers(spec);
        let mut ephemeral: Vec<_> = added
            .map(|added| container::ephemeral_status(self, world, &added))
            .collect();
        if self.has_stopped(world) {
            let begun = self.initialized(world);
            terminate_all(begun, &mut init, &mut main);
            let begun = ephemeral.iter_mut().filter(|status| has_begun(status));
            begun.for_each(set_terminated);
        }
        [init, main, ephemeral]
    }

    /// Sets the resources of a Pod that has resources as a whole.
    fn set_resources(&self, world: &World, status: &mut PodStatus) {
        let spec = &self.object.spec;
        if let Some(allocated) = &spec.resources {
            status.allocated_resources = pod_resources::requests(spec);
            let resizing = self.wanted_of_pod(world).is_some();
            let had = self.object.status.resources.clone();
            let had = had.filter(|_| resizing);
            status.resources = had.or_else(|| Some(allocated.clone()));
        }
    }

    /// Returns whether the Pod is ending and all its containers have stopped.
    fn has_stopped(&self, world: &World) -> bool {
        self.is_ending(world) && !is_alive(world)
    }

    fn phase(
        &self,
        world: &World,
        init: &[ContainerStatus],
        main: &[ContainerStatus],
    ) -> &'static str {
        let spec = &self.object.spec;
        let computed = if self.has_stopped(world) {
            ended(main.iter())
        } else if !self.initialized(world) {
            let pairs = spec.init_containers.iter().zip(init);
            let mut plain = pairs.filter(|(container, _)| !is_sidecar(container));
            let failed = plain.any(|(_, status)| exit_code(status).is_some_and(|code| code != 0));
            if failed { "Failed" } else { "Pending" }
        } else {
            phase_of(spec, main)
        };
        match (self.object.status.phase.as_str(), computed) {
            ("Running", "Pending") => "Running",
            // A Pod has ended when all containers have, sidecars included.
            (_, "Succeeded" | "Failed") if is_alive(world) => match self.initialized(world) {
                true => "Running",
                false => "Pending",
            },
            _ => computed,
        }
    }
}

/// Sets the end of a Pod that its node has ended. It has failed, whatever the exit codes of its containers.
fn set_failed(world: &World, status: &mut PodStatus) {
    let (reason, message) = match &world.ending {
        Some(ending) => (ending.reason, ending.message.as_str()),
        None => (DEADLINE, DEADLINE_MESSAGE),
    };
    status.phase = "Failed".to_owned();
    status.reason = reason.to_owned();
    status.message = message.to_owned();
}

fn is_alive(world: &World) -> bool {
    world
        .sandbox()
        .is_some_and(|sandbox| sandbox.alive().next().is_some())
}

fn phase_of(spec: &PodSpec, containers: &[ContainerStatus]) -> &'static str {
    let waiting = |status: &ContainerStatus| {
        status.state.running.is_none()
            && status.state.terminated.is_none()
            && status.last_state.terminated.is_none()
    };
    let over = |(container, status): (&Container, &ContainerStatus)| {
        exit_code(status).is_some_and(|code| !restart::restarts(spec, container, code))
    };
    if containers.iter().any(waiting) {
        "Pending"
    } else if spec.containers.iter().zip(containers).all(over) {
        ended(containers.iter())
    } else {
        "Running"
    }
}

fn ended<'a>(mut containers: impl Iterator<Item = &'a ContainerStatus>) -> &'static str {
    match containers.all(|status| exit_code(status) == Some(0)) {
        true => "Succeeded",
        false => "Failed",
    }
}

fn exit_code(status: &ContainerStatus) -> Option<i32> {
    status.state.terminated.as_ref().map(|end| end.exit_code)
}

/// Sets a terminated state for every container that has none, so that no container of a stopped Pod is reported as
/// running or waiting.
///
/// Follows the kubelet's status manager: a container that never ran, or whose end is unknown, counts as failed, so that
/// a Pod that was deleted early is not taken for a successful one. Unless `initialized`, the main containers were not
/// due yet and are left as they are, as are the init containers after the last one that began.
fn terminate_all(initialized: bool, init: &mut [ContainerStatus], main: &mut [ContainerStatus]) {
    let begun = match initialized {
        true => init.len(),
        false => init
            .iter()
            .rposition(has_begun)
            .map_or(0, |last| last.saturating_add(1)),
    };
    init.iter_mut().take(begun).for_each(set_terminated);
    if initialized {
        main.iter_mut().for_each(set_terminated);
    }
}

fn has_begun(status: &ContainerStatus) -> bool {
    status.state.waiting.is_none() || status.last_state.terminated.is_some()
}

fn set_terminated(status: &mut ContainerStatus) {
    if status.state.terminated.is_some() {
        return;
    }
    status.ready = false;
    status.started = Some(false);
    status.state = ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: LOST_EXIT_CODE,
            reason: "ContainerStatusUnknown".to_owned(),
            message: "The container could not be located when the pod was terminated".to_owned(),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    };
}
