//! Probes and postStart hooks: what their results do to a container and its status.

use setpoint_node_agent::{Action, Health, KillReason, PostStart, ProbeResults, Runs};
use setpoint_proto::core::{Container, Lifecycle, LifecycleHandler, Probe};
use setpoint_runtime::ContainerId;

use crate::simulation::{Simulation, pod};

fn id(name: &str, attempt: u32) -> ContainerId {
    ContainerId {
        uid: "uid-1".into(),
        name: name.into(),
        attempt,
    }
}

/// Returns a Pod whose container `web` is changed, after it was started.
fn started(policy: &str, change: impl FnOnce(&mut Container)) -> Simulation {
    let mut pod = pod(policy, &[], &["web"]);
    change(&mut pod.spec.containers[0]);
    let mut simulation = Simulation::of(pod);
    simulation.converge();
    simulation
}

fn report(simulation: &mut Simulation, name: &str, attempt: u32, results: ProbeResults) {
    simulation.world.probes.insert(id(name, attempt), results);
    simulation.converge();
}

fn readiness(health: Health) -> ProbeResults {
    ProbeResults {
        readiness: health,
        ..ProbeResults::default()
    }
}

fn kills(simulation: &Simulation) -> Vec<(KillReason, u64, bool)> {
    let kill = |action: &Action| match action {
        Action::Kill {
            reason,
            grace,
            restarts,
            ..
        } => Some((*reason, grace.as_secs(), *restarts)),
        _ => None,
    };
    simulation.done.iter().filter_map(kill).collect()
}

/// Checks N7.
#[test]
fn a_container_is_ready_while_its_readiness_probe_passes() {
    let probe = |web: &mut Container| web.readiness_probe = Some(Probe::default());
    let mut simulation = started("Always", probe);
    assert!(simulation.done.contains(&Action::Probe(id("web", 0))));
    let mut seen = vec![simulation.summary()];
    for health in [Health::Passing, Health::Failing, Health::Passing] {
        report(&mut simulation, "web", 0, readiness(health));
        seen.push(simulation.summary());
    }
    let running = |ready| ("Running".to_owned(), ready);
    assert_eq!(seen, [false, true, false, true].map(running));
    assert_eq!(simulation.reported("web").started, Some(true));
    assert_eq!(kills(&simulation), []);
}

/// Checks N7.
#[test]
fn a_failing_liveness_probe_kills_the_container_which_is_restarted_with_backoff() {
    let probe = |web: &mut Container| {
        web.liveness_probe = Some(Probe {
            termination_grace_period_seconds: Some(7),
            ..Probe::default()
        });
    };
    let mut simulation = started("Always", probe);
    let failing = ProbeResults {
        liveness: Health::Failing,
        ..ProbeResults::default()
    };
    report(&mut simulation, "web", 0, failing);
    assert_eq!(kills(&simulation), [(KillReason::Liveness, 7, true)]);
    simulation.exit("web", 137);
    simulation.converge();
    assert_eq!(simulation.reported("web").restart_count, 1);
    report(&mut simulation, "web", 1, failing);
    simulation.exit("web", 137);
    assert_eq!(simulation.converge().map(|wait| wait.as_secs()), Some(10));
    let waiting = simulation.reported("web").state.waiting.clone().unwrap();
    assert_eq!(waiting.reason, "CrashLoopBackOff");
}

/// Checks N7.
#[test]
fn a_container_that_is_never_restarted_is_killed_for_good() {
    let probe = |web: &mut Container| web.liveness_probe = Some(Probe::default());
    let mut simulation = started("Never", probe);
    let failing = ProbeResults {
        liveness: Health::Failing,
        ..ProbeResults::default()
    };
    report(&mut simulation, "web", 0, failing);
    assert_eq!(kills(&simulation), [(KillReason::Liveness, 30, false)]);
    simulation.exit("web", 137);
    simulation.converge();
    assert_eq!(simulation.summary(), ("Failed".to_owned(), false));
}

/// Checks N7.
#[test]
fn a_container_has_not_started_until_its_startup_probe_passes() {
    let probe = |web: &mut Container| web.startup_probe = Some(Probe::default());
    let mut simulation = started("Always", probe);
    let status = simulation.reported("web");
    assert!(status.state.running.is_some() && !status.ready);
    assert_eq!(status.started, Some(false));
    let startup = |startup| ProbeResults {
        startup,
        ..ProbeResults::default()
    };
    report(&mut simulation, "web", 0, startup(Health::Passing));
    assert_eq!(simulation.summary(), ("Running".to_owned(), true));
    simulation.exit("web", 1);
    simulation.converge();
    assert_eq!(simulation.reported("web").started, Some(false));
    report(&mut simulation, "web", 1, startup(Health::Failing));
    assert_eq!(kills(&simulation), [(KillReason::Startup, 30, true)]);
}

/// Checks N7.
#[test]
fn a_sidecar_lets_the_next_containers_start_once_it_has_started_itself() {
    let mut pod = pod("Always", &["proxy"], &["web"]);
    let proxy = &mut pod.spec.init_containers[0];
    proxy.restart_policy = Some("Always".into());
    proxy.startup_probe = Some(Probe::default());
    proxy.readiness_probe = Some(Probe::default());
    let mut simulation = Simulation::of(pod);
    simulation.converge();
    assert_eq!(simulation.summary(), ("Pending".to_owned(), false));
    let starts = |simulation: &Simulation, wanted: &str| {
        let mut done = simulation.done.iter();
        done.any(|action| matches!(action, Action::Start { name, .. } if name == wanted))
    };
    assert!(!starts(&simulation, "web"));
    let passing = ProbeResults {
        startup: Health::Passing,
        ..ProbeResults::default()
    };
    report(&mut simulation, "proxy", 0, passing);
    assert!(starts(&simulation, "web"));
    assert_eq!(
        simulation.summary(),
        ("Running".to_owned(), false),
        "the proxy is not ready"
    );
    let ready = ProbeResults {
        readiness: Health::Passing,
        ..passing
    };
    report(&mut simulation, "proxy", 0, ready);
    assert_eq!(simulation.summary(), ("Running".to_owned(), true));
}

/// Checks N7.
#[test]
fn what_runs_no_program_is_not_probed() {
    for (runs, command, probed) in [
        (Runs::Nothing, "sleep", false),
        (Runs::Commands, "", false),
        (Runs::Commands, "sleep", true),
    ] {
        let mut pod = pod("Always", &[], &["web"]);
        let web = &mut pod.spec.containers[0];
        web.readiness_probe = Some(Probe::default());
        web.command = [command.to_owned()]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect();
        let mut simulation = Simulation::of(pod);
        simulation.world.pod.as_mut().unwrap().runs = runs;
        simulation.converge();
        assert_eq!(simulation.summary().1, !probed);
        assert_eq!(
            simulation.done.contains(&Action::Probe(id("web", 0))),
            probed
        );
    }
}

fn with_post_start(container: &mut Container) {
    container.lifecycle = Some(Lifecycle {
        post_start: Some(LifecycleHandler::default()),
        ..Lifecycle::default()
    });
    container.liveness_probe = Some(Probe::default());
}

#[test]
fn containers_start_one_after_the_other_if_they_have_post_start_hooks() {
    let mut pod = pod("Always", &[], &["web", "log"]);
    with_post_start(&mut pod.spec.containers[0]);
    let mut simulation = Simulation::of(pod);
    simulation.post_start = Some(PostStart::Running);
    simulation.converge();
    let starts = |simulation: &Simulation| {
        let starts = simulation.done.iter().filter_map(|action| match action {
            Action::Start { name, .. } => Some(name.clone()),
            _ => None,
        });
        starts.collect::<Vec<_>>()
    };
    assert_eq!(starts(&simulation), ["web"]);
    let waiting = simulation.reported("web").state.waiting.clone().unwrap();
    assert_eq!(waiting.reason, "ContainerCreating");
    assert!(simulation.world.probes.is_empty(), "it is not probed yet");
    simulation.world.post_starts.clear();
    simulation.post_start = None;
    simulation.converge();
    assert_eq!(starts(&simulation), ["web", "log"]);
    assert_eq!(simulation.summary(), ("Running".to_owned(), true));
    assert!(simulation.world.probes.contains_key(&id("web", 0)));
}

#[test]
fn a_container_whose_post_start_hook_fails_is_killed_and_restarted() {
    let mut simulation = started("Always", with_post_start);
    simulation
        .world
        .post_starts
        .insert(id("web", 0), PostStart::Failed);
    simulation.converge();
    assert_eq!(kills(&simulation), [(KillReason::PostStart, 30, true)]);
    simulation.exit("web", 137);
    simulation.converge();
    assert_eq!(simulation.reported("web").restart_count, 1);
}

/// Checks N4 and N7: a probe that fails while its Pod is being deleted changes nothing.
#[test]
fn a_failing_probe_does_not_shorten_the_grace_period_of_a_deleted_pod() {
    let probe = |web: &mut Container| {
        web.liveness_probe = Some(Probe {
            termination_grace_period_seconds: Some(1),
            ..Probe::default()
        });
    };
    let mut simulation = started("Always", probe);
    simulation.delete(30);
    let failing = ProbeResults {
        liveness: Health::Failing,
        ..ProbeResults::default()
    };
    report(&mut simulation, "web", 0, failing);
    assert_eq!(kills(&simulation), []);
    let stops = simulation.done.iter().filter_map(|action| match action {
        Action::Stop { grace, .. } => Some(grace.as_secs()),
        _ => None,
    });
    assert_eq!(stops.collect::<Vec<_>>(), [30]);
}
