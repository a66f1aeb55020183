//! A simulation: users, Pods and metrics change, leaders crash, writes conflict; policies and bounds hold at every
//! step.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;
use setpoint_controller::Outcome;
use setpoint_horizontalpodautoscaler_controller::{
    Action, AutoscalerView, History, Reading, World, decide, plan, resource_samples, status,
};
use setpoint_proto::{ApiError, Reason};

use crate::decisions::fixture::{
    autoscaler, cpu_spec, now, pod_metrics, pod_of_one_cpu, scale, settings,
};

/// What happens before a tick.
#[derive(Clone, Debug)]
enum Happens {
    /// The load of the workload changes, in thousandths of a CPU.
    Load(i64),
    /// A user sets the replicas.
    User(i32),
    /// The leader crashes before the report of its change, and another one begins.
    Crash,
    /// Another writer changes the target after it was read.
    Conflict,
    /// Metrics are missing.
    NoMetrics,
    /// Nothing.
    Tick,
}

/// The rules of the simulated autoscaler: at most 2 more within 60 s, at most 25 % fewer within 60 s.
const UP: i32 = 2;
const DOWN: f64 = 0.25;
const PERIOD: Duration = Duration::from_secs(60);
const SYNC: Duration = Duration::from_secs(15);

struct Cluster {
    autoscaler: AutoscalerView,
    replicas: i32,
    load: i64,
    history: History,
    now: Timestamp,
    /// The time of each change of the autoscaler, and the replicas before and after it.
    changes: Vec<(Timestamp, i32, i32)>,
    /// The time of the last crash or change of a user.
    disturbed: Timestamp,
}

impl Cluster {
    fn new() -> Self {
        let mut spec = cpu_spec(1, 20, 50);
        let rules = |kind: &str, value: i32, window: i32| {
            json!({"policies": [{"type": kind, "value": value, "periodSeconds": 60}], "selectPolicy": "Max",
                "stabilizationWindowSeconds": window})
        };
        spec["behavior"] =
            json!({"scaleUp": rules("Pods", UP, 0), "scaleDown": rules("Percent", 25, 30)});
        Self {
            autoscaler: autoscaler(spec),
            replicas: 4,
            load: 2_000,
            history: History::default(),
            now: now(),
            changes: Vec::new(),
            disturbed: Timestamp::MIN,
        }
    }

    fn world(&self, has_metrics: bool) -> World {
        let count = usize::try_from(self.replicas).unwrap();
        let each = self
            .load
            .checked_div(i64::from(self.replicas))
            .unwrap_or_default();
        let name = |n: usize| format!("web-{n}");
        let metrics: Vec<_> = (0..count)
            .map(|n| pod_metrics(&name(n), "cpu", &[each]))
            .collect();
        let samples = resource_samples(&metrics, "cpu", None);
        World {
            autoscaler: Arc::new(self.autoscaler.clone()),
            scale: Ok(scale(self.replicas)),
            pods: (0..count)
                .map(|n| Arc::new(pod_of_one_cpu(&name(n))))
                .collect(),
            rivals: Vec::new(),
            readings: vec![Reading::Pods(match has_metrics {
                true => Ok(samples),
                false => Err("none".to_owned()),
            })],
            history: self.history.clone(),
            settings: Arc::new(settings()),
            now: self.now,
        }
    }

    fn happens(&mut self, what: &Happens) {
        self.now += SYNC;
        match what {
            Happens::Load(load) => self.load = *load,
            Happens::User(replicas) => {
                self.replicas = *replicas;
                self.disturbed = self.now;
            }
            _ => {}
        }
        self.history.start(self.replicas, self.now);
        let world = self.world(!matches!(what, Happens::NoMetrics));
        let decision = decide(&world);
        if let Some(replicas) = decision.recommendation {
            let window = world.limits(0).longest_window();
            self.history.recommend(replicas, self.now, window);
        }
        let outcome = self.execute(&world, what);
        if matches!(what, Happens::Crash) {
            self.history = History::default();
            self.disturbed = self.now;
        } else if let Some(status) = status(&world, &outcome) {
            self.autoscaler.status = status;
        }
    }

    fn execute(&mut self, world: &World, what: &Happens) -> Outcome<Action> {
        let plan = plan(world);
        let Some(step) = plan.steps.first() else {
            return Outcome::of(plan);
        };
        if matches!(what, Happens::Conflict) {
            let failed = Some(ApiError::new(Reason::Conflict, "it has changed"));
            return Outcome {
                failed,
                ..Outcome::of(plan)
            };
        }
        let Action::Scale { replicas, .. } = &step.action;
        let behavior = self.autoscaler.spec.behavior.as_ref();
        self.history
            .scaled(self.replicas, *replicas, self.now, behavior);
        self.changes.push((self.now, self.replicas, *replicas));
        self.replicas = *replicas;
        Outcome {
            plan,
            failed: None,
            done: 1,
        }
    }

    /// Checks that every change is one that the policies permit, compared with the replicas a period ago, unless
    /// someone else has changed them since.
    fn check(&self) -> Result<(), TestCaseError> {
        let Some((last, before, after)) = self.changes.last() else {
            return Ok(());
        };
        prop_assert!((1..=20).contains(after), "{after}");
        if *last < self.disturbed + PERIOD {
            return Ok(());
        }
        let mut recent = self.changes.iter();
        let first = recent.find(|(at, ..)| *at + PERIOD > *last);
        let start = first.map_or(*before, |(_, start, _)| *start);
        let least = (f64::from(start) * (1.0 - DOWN)) as i32;
        let all = &self.changes;
        prop_assert!(
            after < before || *after <= start + UP,
            "{start} → {after}: {all:?}"
        );
        prop_assert!(
            after > before || *after >= least,
            "{start} → {after}: {all:?}"
        );
        Ok(())
    }
}

fn happening() -> impl Strategy<Value = Happens> {
    prop_oneof![
        3 => (0..12_000_i64).prop_map(Happens::Load),
        1 => (0..30_i32).prop_map(Happens::User),
        1 => Just(Happens::Crash),
        1 => Just(Happens::Conflict),
        1 => Just(Happens::NoMetrics),
        8 => Just(Happens::Tick),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Checks H1.
    #[test]
    fn policies_are_never_exceeded_and_a_steady_load_converges(
        happenings in prop::collection::vec(happening(), 0..60),
        load in 500..9_000_i64,
    ) {
        let mut cluster = Cluster::new();
        for what in &happenings {
            cluster.happens(what);
            cluster.check()?;
        }
        if cluster.replicas == 0 {
            // A user has disabled the autoscaler.
            cluster.happens(&Happens::Tick);
            prop_assert_eq!(cluster.replicas, 0);
            cluster.happens(&Happens::User(1));
        }
        cluster.happens(&Happens::Load(load));
        for _ in 0..100 {
            cluster.happens(&Happens::Tick);
            cluster.check()?;
        }
        let before = cluster.autoscaler.status.clone();
        let replicas = cluster.replicas;
        cluster.happens(&Happens::Tick);
        prop_assert_eq!(cluster.replicas, replicas, "it has converged");
        prop_assert_eq!(&cluster.autoscaler.status, &before, "nothing is left to report");
        let usage = load / i64::from(replicas);
        // Within the tolerance of the target of 500, or one replica fewer would be too few.
        let fewer = load / i64::from(replicas - 1).max(1);
        prop_assert!(usage <= 560 && (usage >= 440 || fewer > 500 || replicas == 1), "{usage} {replicas}");
    }
}
