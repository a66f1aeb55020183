//! The conditions of a Pod, in the kubelet's order and words.

use setpoint_model::condition::{self, FALSE, TRUE};
use setpoint_model::pod::is_sidecar;
use setpoint_model::pod::{DISRUPTION_TARGET, RESIZE_IN_PROGRESS, RESIZE_PENDING};
use setpoint_proto::core::{PodCondition, PodStatus};
use setpoint_runtime as runtime;

use crate::pod::restart;
use crate::pod::world::{AssignedPod, World};

/// The type of the condition of a Pod all of whose containers are being restarted.
const ALL_CONTAINERS_RESTARTING: &str = "AllContainersRestarting";

/// `Ok` if a condition is true, else its reason and message.
type Verdict = Result<(), (&'static str, String)>;

/// Returns the conditions for this status. Conditions set by others are kept.
pub fn conditions(pod: &AssignedPod, world: &World, status: &PodStatus) -> Vec<PodCondition> {
    let reported = &pod.object.status.conditions;
    let ready = containers_ready(pod, status);
    let verdicts = [
        (
            "PodReadyToStartContainers",
            world
                .sandbox()
                .filter(|sandbox| sandbox.ready)
                .map(|_| ())
                .ok_or_else(Default::default),
        ),
        ("Initialized", initialized(pod, world)),
        ("Ready", ready.clone().and_then(|()| gates(pod))),
        ("ContainersReady", ready),
        ("PodScheduled", Ok(())),
    ];
    let generation = pod.object.metadata.generation;
    let mut conditions: Vec<PodCondition> = verdicts
        .into_iter()
        .map(|(kind, verdict)| stated(kind, verdict, reported, world, generation))
        .collect();
    conditions.extend(resize(pod, world));
    conditions.extend(restarting(pod, world, status));
    let ours = |kind: &str| {
        [RESIZE_PENDING, RESIZE_IN_PROGRESS].contains(&kind)
            || condition::get(&conditions, kind).is_some()
    };
    let foreign = reported.iter().filter(|old| !ours(&old.r#type));
    let foreign: Vec<_> = foreign.cloned().collect();
    conditions.extend(foreign);
    let ending = world.ending.as_ref().filter(|ending| ending.disrupts);
    if let Some(ending) = ending.filter(|_| status.phase == "Failed") {
        let target = disruption(&ending.message, world, generation);
        condition::set(&mut conditions, target);
    }
    conditions
}

/// Returns the condition of a Pod that its node has ended.
fn disruption(message: &str, world: &World, generation: i64) -> PodCondition {
    PodCondition {
        r#type: DISRUPTION_TARGET.to_owned(),
        status: TRUE.to_owned(),
        reason: "TerminationByKubelet".to_owned(),
        message: message.to_owned(),
        last_transition_time: world.now.into(),
        observed_generation: generation,
        ..PodCondition::default()
    }
}

fn stated(
    kind: &str,
    verdict: Verdict,
    reported: &[PodCondition],
    world: &World,
    generation: i64,
) -> PodCondition {
    let status = if verdict.is_ok() { TRUE } else { FALSE };
    let (reason, message) = verdict.err().unwrap_or_default();
    condition_of(
        (kind, status),
        (reason, message),
        reported,
        world,
        generation,
    )
}

fn condition_of(
    (kind, status): (&str, &str),
    (reason, message): (&str, String),
    reported: &[PodCondition],
    world: &World,
    generation: i64,
) -> PodCondition {
    let same = condition::get(reported, kind).filter(|old| old.status == status);
    PodCondition {
        r#type: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: same.map_or(world.now.into(), |old| old.last_transition_time),
        observed_generation: generation,
        ..PodCondition::default()
    }
}

/// Returns the conditions of a resize: one that is not allocated, and one that the containers do not have yet.
fn resize(pod: &AssignedPod, world: &World) -> Vec<PodCondition> {
    let pending = pod.resize.as_ref();
    let pending = pending.and_then(|resize| resize.verdict.as_ref().err());
    let pending = pending.map(|why| (RESIZE_PENDING, why.reason, why.message.clone()));
    let in_progress = pod.is_resizing(world).then(|| match &world.resize_error {
        Some(error) => (RESIZE_IN_PROGRESS, "Error", error.clone()),
        None => (RESIZE_IN_PROGRESS, "", String::new()),
    });
    let (reported, generation) = (
        &pod.object.status.conditions,
        pod.object.metadata.generation,
    );
    let all = pending.into_iter().chain(in_progress);
    all.map(|(kind, reason, message)| {
        condition_of((kind, TRUE), (reason, message), reported, world, generation)
    })
    .collect()
}

/// Returns the condition of a Pod whose containers can be restarted together: it is true from the exit that causes that
/// until the first of them has been started again.
fn restarting(pod: &AssignedPod, world: &World, status: &PodStatus) -> Option<PodCondition> {
    if !restart::may_restart_all(&pod.object.spec) {
        return None;
    }
    let round = world.round();
    let all = || world.sandbox().into_iter().flat_map(|own| &own.containers);
    let begun = round == 0 || all().any(|one| one.round == round);
    let stops =
        all().any(|one| world.is_outdated(one) && !matches!(one.state, runtime::State::Exited(_)));
    let (holds, reason, message) = match status.phase.as_str() {
        "Succeeded" => (FALSE, "PodCompleted", ""),
        "Failed" => (FALSE, "PodFailed", ""),
        _ if begun && !stops => (FALSE, "", ""),
        _ => (
            TRUE,
            "RestartAllContainersStarted",
            "container exited with restart policy rule",
        ),
    };
    let reported = &pod.object.status.conditions;
    let generation = pod.object.metadata.generation;
    let condition = condition_of(
        (ALL_CONTAINERS_RESTARTING, holds),
        (reason, message.to_owned()),
        reported,
        world,
        generation,
    );
    Some(condition)
}

fn initialized(pod: &AssignedPod, world: &World) -> Verdict {
    // Once all containers have been restarted, init containers run again, and the Pod stays initialized.
    let before =
        world.round() > 0 && condition::is_true(&pod.object.status.conditions, "Initialized");
    if before || pod.initialized(world) {
        return Ok(());
    }
    let init = pod.object.spec.init_containers.iter();
    let missing = init.filter(|container| !pod.is_init_complete(world, container));
    let names: Vec<_> = missing.map(|container| container.name.as_str()).collect();
    let message = format!("containers with incomplete status: [{}]", names.join(" "));
    Err(("ContainersNotInitialized", message))
}

fn containers_ready(pod: &AssignedPod, status: &PodStatus) -> Verdict {
    if status.phase == "Succeeded" {
        return Err(("PodCompleted", String::new()));
    }
    if status.phase == "Failed" {
        return Err(("PodFailed", String::new()));
    }
    let init = pod.object.spec.init_containers.iter();
    let sidecars = init
        .zip(&status.init_container_statuses)
        .filter(|(init, _)| is_sidecar(init));
    let all = sidecars
        .map(|(_, status)| status)
        .chain(&status.container_statuses);
    let unready = all.filter(|status| !status.ready);
    let names: Vec<_> = unready.map(|status| status.name.as_str()).collect();
    match names.as_slice() {
        [] => Ok(()),
        names => {
            let message = format!("containers with unready status: [{}]", names.join(" "));
            Err(("ContainersNotReady", message))
        }
    }
}

/// Evaluates the Pod's readiness gates.
fn gates(pod: &AssignedPod) -> Verdict {
    let conditions = &pod.object.status.conditions;
    for gate in &pod.object.spec.readiness_gates {
        let kind = gate.condition_type.as_str();
        if !condition::is_true(conditions, kind) {
            let message = match condition::get(conditions, kind) {
                None => format!(
                    "corresponding condition of pod readiness gate {kind:?} does not exist."
                ),
                Some(found) => format!(
                    "the status of pod readiness gate {kind:?} is not \"True\", but {}",
                    found.status
                ),
            };
            return Err(("ReadinessGatesNotReady", message));
        }
    }
    Ok(())
}
