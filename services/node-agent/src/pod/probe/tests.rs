//! The tasks of probes, in paused time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use setpoint_proto::core::{Container, ExecAction, Pod, Probe, ProbeHandler};
use setpoint_runtime::{Runtime as _, Wake};
use tokio::time::{Instant, sleep};

use super::{Begin, Probes, spread};
use crate::pod::events::Events;
use crate::pod::fake::{Fake, id};
use crate::pod::health::{Health, ProbeResults};

struct Fixture {
    runtime: Fake,
    probes: Arc<Probes>,
    wakes: Arc<AtomicUsize>,
}

impl Fixture {
    fn begin(container: Container) -> Self {
        Self::continued(container, ProbeResults::default())
    }

    fn continued(container: Container, results: ProbeResults) -> Self {
        let fixture = Self {
            runtime: Fake::new(),
            probes: Arc::default(),
            wakes: Arc::default(),
        };
        let wakes = Arc::clone(&fixture.wakes);
        let wake: Wake = Arc::new(move |_| {
            wakes.fetch_add(1, Ordering::Relaxed);
        });
        let begin = Begin {
            target: fixture.runtime.target(container),
            pod: Arc::new(Pod::default()),
            since: Timestamp::now(),
            results,
        };
        fixture.probes.begin(begin, &Events::new(None), &wake);
        fixture
    }

    fn results(&self) -> ProbeResults {
        self.probes.results("uid-1").remove(&id()).unwrap()
    }

    fn wakes(&self) -> usize {
        self.wakes.load(Ordering::Relaxed)
    }
}

fn probe() -> Probe {
    Probe {
        handler: ProbeHandler {
            exec: Some(ExecAction::default()),
            ..ProbeHandler::default()
        },
        period_seconds: 10,
        timeout_seconds: 1,
        success_threshold: 1,
        failure_threshold: 3,
        ..Probe::default()
    }
}

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

/// Checks N7.
#[tokio::test(start_paused = true)]
async fn a_probe_runs_after_its_initial_delay_and_in_its_period() {
    let fixture = Fixture::begin(Container {
        readiness_probe: Some(Probe {
            initial_delay_seconds: 5,
            ..probe()
        }),
        ..Container::default()
    });
    seconds(4).await;
    assert_eq!(fixture.runtime.commands(), 0);
    seconds(2).await;
    assert_eq!(
        (fixture.runtime.commands(), fixture.results().readiness),
        (1, Health::Passing)
    );
    seconds(30).await;
    assert_eq!(fixture.runtime.commands(), 4);
    assert_eq!(fixture.wakes(), 1, "only changes are told");
}

/// Checks N7.
#[tokio::test(start_paused = true)]
async fn a_liveness_probe_ends_when_it_has_failed() {
    let fixture = Fixture::begin(Container {
        liveness_probe: Some(probe()),
        ..Container::default()
    });
    fixture.runtime.answer("", 1);
    seconds(15).await;
    assert_ne!(fixture.results().liveness, Health::Failing);
    seconds(10).await;
    assert_eq!(fixture.results().liveness, Health::Failing);
    seconds(100).await;
    assert_eq!(fixture.runtime.commands(), 3);
}

/// Checks N7.
#[tokio::test(start_paused = true)]
async fn the_other_probes_wait_for_the_startup_probe() {
    let container = Container {
        startup_probe: Some(probe()),
        readiness_probe: Some(probe()),
        ..Container::default()
    };
    let fixture = Fixture::begin(container.clone());
    fixture.runtime.answer("", 1);
    seconds(15).await;
    assert_eq!(fixture.runtime.commands(), 2);
    fixture.runtime.answer("", 0);
    seconds(10).await;
    let results = fixture.results();
    assert_eq!(
        (results.startup, results.readiness),
        (Health::Passing, Health::Passing)
    );
    let before = fixture.runtime.commands();
    seconds(10).await;
    assert_eq!(fixture.runtime.commands(), before + 1, "it runs no more");
    let started = ProbeResults {
        startup: Health::Passing,
        readiness: Health::Passing,
        liveness: Health::Passing,
    };
    let fixture = Fixture::continued(container, started);
    seconds(1).await;
    assert_eq!(
        fixture.runtime.commands(),
        1,
        "only the readiness probe goes on"
    );
}

/// Checks N7.
#[tokio::test(start_paused = true)]
async fn a_container_that_is_being_stopped_is_only_asked_whether_it_is_ready() {
    let fixture = Fixture::begin(Container {
        liveness_probe: Some(probe()),
        readiness_probe: Some(probe()),
        ..Container::default()
    });
    seconds(5).await;
    assert_eq!(fixture.runtime.commands(), 2);
    fixture
        .runtime
        .stop(&id(), Duration::from_secs(100))
        .await
        .unwrap();
    seconds(10).await;
    assert_eq!(fixture.runtime.commands(), 3);
    fixture.probes.forget_pod("uid-1");
    seconds(20).await;
    assert_eq!(fixture.runtime.commands(), 3);
}

/// Checks N7.
#[tokio::test(start_paused = true)]
async fn a_probe_that_hangs_fails_at_its_timeout() {
    let fixture = Fixture::begin(Container {
        liveness_probe: Some(Probe {
            failure_threshold: 1,
            ..probe()
        }),
        ..Container::default()
    });
    fixture.runtime.hang();
    let begun = Instant::now();
    while fixture.results().liveness != Health::Failing {
        sleep(Duration::from_millis(100)).await;
    }
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[test]
fn adopted_containers_are_probed_at_different_times() {
    let period = Duration::from_secs(10);
    let delay = |name: &str, ran: u64| {
        let id = setpoint_runtime::ContainerId {
            name: name.into(),
            ..id()
        };
        spread(&id, Duration::from_secs(ran), period)
    };
    assert_eq!(delay("web", 1), Duration::ZERO);
    assert_ne!(delay("web", 1000), delay("log", 1000));
    assert!(delay("web", 1000) < period);
}
