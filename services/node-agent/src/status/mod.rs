//! What to report of a Pod, in the kubelet's words. Pure, like the plan.
//!
//! ```text
//! Pending ─▶ Running ─▶ Succeeded | Failed        forward only: what was reported is never taken back
//! ```

mod conditions;
mod container;
mod terminated;

use setpoint_model::pod::is_terminal;
use setpoint_proto::core::{ContainerStatus, HostIp, PodIp, PodStatus};

use crate::ledger::Shortage;
use crate::restart::{Policy, is_sidecar};
use crate::world::{Bound, World};

/// The reason and the message of a Pod that was active for longer than its deadline, as the kubelet gives them.
pub const DEADLINE: &str = "DeadlineExceeded";
pub const DEADLINE_MESSAGE: &str = "Pod was active on the node longer than the specified deadline";

/// The Pod's status, if it is not what was last reported.
pub fn status(world: &World) -> Option<PodStatus> {
    let pod = world.pod.as_ref()?;
    let reported = &pod.object.status;
    if is_terminal(&pod.object) {
        return None;
    }
    let status = match &pod.admission {
        Err(shortage) => pod.rejected(world, shortage),
        Ok(_) => pod.status(world),
    };
    (status != *reported).then_some(status)
}

impl Bound {
    fn rejected(&self, world: &World, shortage: &Shortage) -> PodStatus {
        PodStatus {
            phase: "Failed".to_owned(),
            reason: shortage.reason(),
            message: format!("Pod was rejected: {}", shortage.message()),
            start_time: Some(world.now.into()),
            observed_generation: self.object.metadata.generation,
            ..self.object.status.clone()
        }
    }

    fn status(&self, world: &World) -> PodStatus {
        let (spec, reported) = (&self.object.spec, &self.object.status);
        let of = |container| container::status(self, world, container);
        let mut init: Vec<_> = spec.init_containers.iter().map(of).collect();
        let mut main: Vec<_> = spec.containers.iter().map(of).collect();
        if self.has_stopped(world) {
            let begun = self.initialized(world);
            terminated::all(begun, &mut init, &mut main);
        }
        let mut status = PodStatus {
            phase: self.phase(world, &init, &main).to_owned(),
            host_ip: self.host_ip.clone(),
            host_ips: vec![HostIp {
                ip: self.host_ip.clone(),
            }],
            start_time: reported.start_time.or_else(|| Some(world.now.into())),
            init_container_statuses: init,
            container_statuses: main,
            observed_generation: self.object.metadata.generation,
            ..reported.clone()
        };
        if let Some(sandbox) = world.sandbox() {
            let ip = sandbox.config.ip.to_string();
            status.pod_ip.clone_from(&ip);
            status.pod_ips = vec![PodIp { ip }];
        }
        if self.has_stopped(world) && !self.is_deleting() {
            // A deadline that has passed is the Pod's failure, whatever its containers made of it.
            status.phase = "Failed".to_owned();
            status.reason = DEADLINE.to_owned();
            status.message = DEADLINE_MESSAGE.to_owned();
        }
        status.conditions = conditions::conditions(self, world, &status);
        status
    }

    /// All its containers have stopped, and none will start again.
    fn has_stopped(&self, world: &World) -> bool {
        self.is_ending(world.now)
            && world
                .sandbox()
                .is_none_or(|sandbox| sandbox.alive().next().is_none())
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
            phase_of(main, Policy::of(spec))
        };
        match (self.object.status.phase.as_str(), computed) {
            ("Running", "Pending") => "Running",
            _ => computed,
        }
    }
}

fn phase_of(containers: &[ContainerStatus], policy: Policy) -> &'static str {
    let waiting = |status: &ContainerStatus| {
        status.state.running.is_none()
            && status.state.terminated.is_none()
            && status.last_state.terminated.is_none()
    };
    let over =
        |status: &ContainerStatus| exit_code(status).is_some_and(|code| !policy.restarts(code));
    if containers.iter().any(waiting) {
        "Pending"
    } else if containers.iter().all(over) {
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
