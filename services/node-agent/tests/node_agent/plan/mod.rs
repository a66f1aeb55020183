//! Plans and statuses over the life of a simulated Pod.

mod ending;
mod ephemeral;
mod init;
mod probes;
mod resize;
mod restarts;
mod sidecars;
mod status;
mod termination;

use std::time::Duration;

use setpoint_node_agent::{
    Action, InsufficientResource, LastAttempt, Rejection, Runs, WaitingReason, plan,
};
use setpoint_proto::core::{ConfigMapVolumeSource, Volume, VolumeMount};

use crate::simulation::{IP, Simulation, pod};

fn summary(phase: &str, ready: bool) -> (String, bool) {
    (phase.to_owned(), ready)
}

#[test]
fn a_pod_is_running_and_ready_after_one_status_update() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    assert_eq!(simulation.converge(), None);
    assert_eq!(simulation.summary(), summary("Running", true));
    assert_eq!(simulation.status_updates, 1);
    let status = simulation.pod().status.clone();
    assert_eq!(
        (status.pod_ip, status.host_ip.as_str()),
        (IP.to_string(), "10.1.2.1")
    );
    assert_eq!(
        status.container_statuses[0].container_id,
        "fake://uid-1/web/0"
    );
    let kinds: Vec<_> = status
        .conditions
        .iter()
        .map(|condition| condition.r#type.as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "PodReadyToStartContainers",
            "Initialized",
            "Ready",
            "ContainersReady",
            "PodScheduled"
        ]
    );
}

/// Checks N1.
#[test]
fn a_crashing_container_is_restarted_at_once_and_then_with_growing_backoff() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.converge();
    let mut backoffs = Vec::new();
    for count in 1..=7 {
        simulation.exit("web", 1);
        let again = simulation.converge().map_or(0, |again| again.as_secs());
        backoffs.push(again);
        simulation.advance(again);
        simulation.converge();
        assert_eq!(simulation.reported("web").restart_count, count);
        assert_eq!(
            simulation
                .reported("web")
                .last_state
                .terminated
                .as_ref()
                .unwrap()
                .exit_code,
            1
        );
    }
    assert_eq!(backoffs, [0, 10, 20, 40, 80, 160, 300]);
    simulation.advance(600);
    simulation.exit("web", 1);
    assert_eq!(
        simulation.converge(),
        None,
        "ten good minutes: at once again"
    );
    assert_eq!(simulation.reported("web").restart_count, 8);
}

/// Checks N1.
#[test]
fn a_container_in_backoff_waits_with_the_message_of_the_kubelet() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.converge();
    simulation.exit("web", 1);
    simulation.converge();
    simulation.exit("web", 2);
    simulation.converge();
    let status = simulation.reported("web");
    let waiting = status.state.waiting.as_ref().unwrap();
    assert_eq!(waiting.reason, "CrashLoopBackOff");
    let message = "back-off 10s restarting failed container=web pod=web_default(uid-1)";
    assert_eq!(waiting.message, message);
    assert_eq!(status.last_state.terminated.as_ref().unwrap().exit_code, 2);
    assert_eq!((status.restart_count, status.ready), (1, false));
    assert_eq!(simulation.summary(), summary("Running", false));
}

/// Checks F41.
#[test]
fn a_clock_that_is_set_back_delays_no_restart() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.converge();
    simulation.exit("web", 1);
    simulation.converge();
    simulation.exit("web", 1);
    assert_eq!(simulation.converge(), Some(Duration::from_secs(10)));
    simulation.world.now -= Duration::from_secs(3600);
    assert_eq!(simulation.converge(), Some(Duration::from_secs(10)));
    simulation.advance(10);
    simulation.converge();
    assert_eq!(simulation.reported("web").restart_count, 2);
}

/// Checks N1.
#[test]
fn the_restart_policy_decides_whether_an_exit_ends_the_pod() {
    let outcome = |policy: &str, code| {
        let mut simulation = Simulation::of(pod(policy, &[], &["web"]));
        simulation.converge();
        simulation.exit("web", code);
        simulation.converge();
        (
            simulation.summary().0,
            simulation.reported("web").restart_count,
        )
    };
    assert_eq!(outcome("Always", 0), ("Running".into(), 1));
    assert_eq!(outcome("Always", 1), ("Running".into(), 1));
    assert_eq!(outcome("OnFailure", 0), ("Succeeded".into(), 0));
    assert_eq!(outcome("OnFailure", 1), ("Running".into(), 1));
    assert_eq!(outcome("Never", 0), ("Succeeded".into(), 0));
    assert_eq!(outcome("Never", 1), ("Failed".into(), 0));
}

/// Checks N3.
#[test]
fn a_pod_waits_until_stale_sandboxes_of_its_name_are_removed() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.converge();
    simulation.pod().metadata.uid = "uid-2".into();
    simulation.pod().status = pod("Always", &[], &[]).status;
    simulation.done.clear();
    let steps = plan(&simulation.world).steps;
    assert!(matches!(steps.as_slice(), [step] if matches!(step.action, Action::Stop { .. })));
    simulation.exit("web", 0);
    let steps = plan(&simulation.world).steps;
    assert!(
        matches!(steps.as_slice(), [step] if step.action == Action::RemoveSandbox("uid-1".into()))
    );
}

/// Checks N8.
#[test]
fn a_pod_that_does_not_fit_is_rejected_with_a_reason() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.world.pod.as_mut().unwrap().admission =
        Err(Rejection::Insufficient(InsufficientResource {
            resource: "cpu".to_owned(),
            requested: 500,
            used: 3600,
            capacity: 4000,
        }));
    simulation.converge();
    let status = simulation.pod().status.clone();
    assert_eq!(
        (status.phase.as_str(), status.reason.as_str()),
        ("Failed", "OutOfcpu")
    );
    let message = "Pod was rejected: Node didn't have enough resource: cpu, requested: 500, used: 3600, capacity: 4000";
    assert_eq!(status.message, message);
    assert_eq!(status.observed_generation, 1);
    assert_eq!(status.start_time, Some(simulation.world.now.into()));
    assert!(simulation.done.is_empty());
}

/// Checks F5.
#[test]
fn a_pod_whose_host_port_is_taken_is_rejected() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.world.pod.as_mut().unwrap().admission = Err(Rejection::HostPort);
    simulation.converge();
    let status = &simulation.pod().status;
    assert_eq!(
        (status.phase.as_str(), status.reason.as_str()),
        ("Failed", "NodePorts")
    );
    assert_eq!(
        status.message,
        "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    );
}

#[test]
fn a_pod_is_admitted_before_it_gets_a_sandbox() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.world.pod.as_mut().unwrap().admission = Ok(None);
    let first = plan(&simulation.world).steps.remove(0);
    assert_eq!(first.action, Action::Admit);
    simulation.converge();
    let ran = simulation
        .done
        .iter()
        .position(|action| *action == Action::RunSandbox { ip: IP });
    assert_eq!(ran, Some(1));
}

#[test]
fn a_container_that_cannot_be_configured_waits_with_the_reason() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.add_sandbox("uid-1", IP);
    let (reason, message) = (
        "CreateContainerConfigError",
        "configmap \"x\" not found".to_owned(),
    );
    simulation.world.waiting_reasons.insert(
        "web".into(),
        WaitingReason {
            reason: reason.into(),
            message,
        },
    );
    let status = setpoint_node_agent::status(&simulation.world).unwrap();
    let waiting = status.container_statuses[0].state.waiting.clone().unwrap();
    assert_eq!(
        (waiting.reason.as_str(), waiting.message.as_str()),
        (reason, "configmap \"x\" not found")
    );
    assert_eq!(status.phase, "Pending");
}

/// Checks N2.
#[test]
fn containers_that_the_runtime_lost_are_restarted() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.converge();
    simulation.world.sandboxes.clear();
    simulation.converge();
    assert_eq!(simulation.summary(), summary("Running", true));
    let status = simulation.reported("web");
    assert_eq!(status.restart_count, 1);
    let last = status.last_state.terminated.as_ref().unwrap();
    assert_eq!(
        (last.exit_code, last.reason.as_str()),
        (137, "ContainerStatusUnknown")
    );
}

#[test]
fn a_running_container_that_the_runtime_lost_has_the_lost_exit_code() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.converge();
    simulation.exit("web", 0);
    simulation.converge();
    simulation.world.sandboxes.clear();
    let last = simulation.world.history("web").last;
    assert!(
        matches!(last, LastAttempt::Ended(ended) if ended.code == 137),
        "{last:?}"
    );
}

/// Checks N5.
#[test]
fn a_pod_that_was_reported_to_run_is_never_pending_again() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.pod().status.phase = "Running".into();
    let status = setpoint_node_agent::status(&simulation.world).unwrap();
    assert!(status.container_statuses[0].state.waiting.is_some());
    assert_eq!(status.phase, "Running");
}

/// Checks N2.
#[test]
fn a_pod_that_has_ended_is_never_started_again() {
    let mut simulation = Simulation::of(pod("Never", &[], &["web"]));
    simulation.converge();
    simulation.exit("web", 0);
    simulation.converge();
    simulation.world.sandboxes.clear();
    simulation.done.clear();
    simulation.converge();
    assert!(simulation.done.is_empty());
    assert_eq!(simulation.summary().0, "Succeeded");
}

impl Simulation {
    /// Executes plans up to the final status update.
    fn execute_until_final_status(&mut self) {
        for _ in 0..16 {
            let step = plan(&self.world).steps.remove(0);
            let reported = step.action == Action::UpdateStatus;
            self.execute(step.action);
            if reported {
                return;
            }
        }
        panic!("nothing is reported: {:?}", self.done);
    }

    /// Converges a Pod that is deleted on the way.
    fn converge_until_gone(&mut self) {
        self.converge();
        assert!(self.world.pod.is_none() && self.world.sandboxes.is_empty());
    }
}

#[test]
fn files_of_a_pod_are_compared_with_their_objects_every_minute() {
    let mut simulation = Simulation::of(pod("Always", &[], &["web"]));
    simulation.world.pod.as_mut().unwrap().mounts = true;
    let updates = |simulation: &Simulation| {
        let updates = simulation.done.iter();
        updates
            .filter(|action| **action == Action::UpdateVolumes)
            .count()
    };
    assert_eq!(simulation.converge(), Some(Duration::from_secs(60)));
    assert_eq!(updates(&simulation), 1);
    simulation.advance(45);
    assert_eq!(simulation.converge(), Some(Duration::from_secs(15)));
    simulation.advance(15);
    simulation.converge();
    assert_eq!(updates(&simulation), 2);
}

/// The files of the account are no mounts there, but a directory.
#[test]
fn on_a_node_without_mounts_only_the_files_of_the_account_are_compared() {
    let mut pod = pod("Always", &[], &["web"]);
    let mut volume = Volume::default();
    volume.volume_source.config_map = Some(ConfigMapVolumeSource::default());
    pod.spec.volumes.push(volume);
    pod.spec.containers[0].volume_mounts.push(VolumeMount {
        mount_path: "/etc/words".into(),
        ..VolumeMount::default()
    });
    let converge = |pod| {
        let mut simulation = Simulation::of(pod);
        simulation.world.pod.as_mut().unwrap().runs = Runs::Commands;
        simulation.converge()
    };
    assert_eq!(converge(pod.clone()), None);
    let mount = &mut pod.spec.containers[0].volume_mounts[0];
    mount.mount_path = "/var/run/secrets/kubernetes.io/serviceaccount".into();
    assert_eq!(converge(pod), Some(Duration::from_secs(60)));
}
