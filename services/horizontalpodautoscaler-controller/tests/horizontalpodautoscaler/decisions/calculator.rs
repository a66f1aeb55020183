//! The calculator, with the cases of upstream's `replica_calculator_test.go`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_horizontalpodautoscaler_controller::{
    Calculator, ContainerRequests, Phase, PodView, Readiness, Sample, Samples, Tolerances, Usage,
    resource_samples,
};

use crate::decisions::fixture::{ago, now, pod, pod_metrics, requests, settings};

const DEFAULT: Tolerances = Tolerances { down: 0.1, up: 0.1 };

/// How the usage of Pods is given.
#[derive(Clone, Copy)]
enum Levels<'a> {
    /// Each of the two containers of a Pod uses this.
    Both(&'a [i64]),
    /// The containers of each Pod.
    Each(&'a [&'a [i64]]),
}
use Levels::{Both, Each};

const HOT: Option<u64> = Some(0);
const COOL: Option<u64> = Some(180);

/// A case of the usage of CPU against requests.
struct Cpu<'a> {
    current: i32,
    levels: Levels<'a>,
    /// Of each of two containers, in thousandths.
    requests: &'a [i64],
    target: i32,
    container: Option<&'a str>,
    unready: &'a [usize],
    phases: &'a [(usize, Phase)],
    deleted: &'a [usize],
    /// Seconds since the start of each Pod.
    started: &'a [Option<u64>],
    tolerances: Tolerances,
    pods: Option<usize>,
    expected: Result<(i32, i32, i64), &'a str>,
}

const ONE: &[i64] = &[1_000; 10];

impl Default for Cpu<'_> {
    fn default() -> Self {
        Self {
            current: 3,
            levels: Both(&[]),
            requests: ONE,
            target: 30,
            container: None,
            unready: &[],
            phases: &[],
            deleted: &[],
            started: &[],
            tolerances: DEFAULT,
            pods: None,
            expected: Err(""),
        }
    }
}

impl Cpu<'_> {
    fn pods(&self) -> Vec<Arc<PodView>> {
        let count = self.pods.unwrap_or(usize::try_from(self.current).unwrap());
        (0..count).map(|index| Arc::new(self.pod(index))).collect()
    }

    fn pod(&self, index: usize) -> PodView {
        let mut pod = pod(&format!("pod-{index}"));
        if self.unready.contains(&index) {
            pod.readiness = Some(Readiness {
                ready: Some(false),
                since: Timestamp::MIN,
            });
        }
        if let Some((_, phase)) = self.phases.iter().find(|(of, _)| *of == index) {
            pod.phase = *phase;
        }
        pod.meta.deleting = self.deleted.contains(&index);
        if let Some(Some(seconds)) = self.started.get(index) {
            pod.started = Some(ago(*seconds));
        }
        let names = ["container1", "container2"];
        pod.containers = match self.requests.get(index) {
            Some(request) => names.map(|name| requests(name, "cpu", *request)).into(),
            None => names
                .map(|name| ContainerRequests {
                    name: name.into(),
                    ..Default::default()
                })
                .into(),
        };
        pod
    }

    fn samples(&self) -> Samples {
        let metrics = |index: usize, millis: &[i64]| {
            let mut metrics = pod_metrics(&format!("pod-{index}"), "cpu", millis);
            metrics.timestamp = Timestamp::MIN.into();
            metrics
        };
        let metrics: Vec<_> = match self.levels {
            Both(levels) => (0..)
                .zip(levels)
                .map(|(index, level)| metrics(index, &[*level; 2]))
                .collect(),
            Each(levels) => (0..)
                .zip(levels)
                .map(|(index, levels)| metrics(index, levels))
                .collect(),
        };
        resource_samples(&metrics, "cpu", self.container)
    }

    fn compute(&self) -> Result<(i32, i32, i64), String> {
        let (pods, settings) = (self.pods(), settings());
        let calculator = Calculator {
            pods: &pods,
            current: self.current,
            observed: self.current,
            tolerances: self.tolerances,
            settings: &settings,
            now: now(),
        };
        let usage = calculator.utilization(self.samples(), "cpu", self.container, self.target)?;
        Ok((usage.replicas, usage.percent, usage.value))
    }
}

/// Checks H1.
#[test]
fn replicas_follow_from_the_usage_of_cpu_as_upstream_computes_them() {
    const RUNNING: Phase = Phase::Running;
    const FAILED: &[(usize, Phase)] = &[(2, Phase::Failed), (3, Phase::Failed)];
    const FAILED_LATER: &[(usize, Phase)] = &[(5, Phase::Failed), (6, Phase::Failed)];
    const PENDING: &[(usize, Phase)] = &[
        (0, RUNNING),
        (1, Phase::Pending),
        (2, Phase::Pending),
        (3, Phase::Pending),
        (4, Phase::Pending),
    ];
    let second = Some("container2");
    let five = Both(&[100, 300, 500, 250, 250]);
    let five_second = Each(&[
        &[1_000, 100],
        &[1_000, 300],
        &[1_000, 500],
        &[1_000, 250],
        &[1_000, 250],
    ]);
    let two_second = Each(&[&[1_000, 500], &[9_000, 700]]);
    let mixed: &[i64] = &[900, 1_000, 1_100];
    let tolerances = |down, up| Tolerances { down, up };
    #[rustfmt::skip]
    let cases = [
        ("scale up", Cpu { levels: Both(&[300, 500, 700]), expected: Ok((5, 50, 1_000)), ..Cpu::default() }),
        ("scale up by a container", Cpu { levels: Each(&[&[1_000, 300], &[1_000, 500], &[1_000, 700]]), container: second, expected: Ok((5, 50, 500)), ..Cpu::default() }),
        ("less with an unready Pod", Cpu { levels: Both(&[300, 500, 700]), unready: &[0], expected: Ok((4, 60, 1_200)), ..Cpu::default() }),
        ("less with a hot container", Cpu { levels: Each(&[&[0, 300], &[0, 500], &[0, 700]]), started: &[HOT, COOL, COOL], container: second, expected: Ok((4, 60, 600)), ..Cpu::default() }),
        ("less with a hot Pod", Cpu { levels: Both(&[300, 500, 700]), started: &[HOT, COOL, COOL], expected: Ok((4, 60, 1_200)), ..Cpu::default() }),
        ("not with unready Pods", Cpu { levels: Both(&[400, 500, 700]), unready: &[1, 2], expected: Ok((3, 40, 800)), ..Cpu::default() }),
        ("not with hot Pods", Cpu { levels: Both(&[400, 500, 700]), unready: &[1, 2], started: &[COOL, HOT, HOT], expected: Ok((3, 40, 800)), ..Cpu::default() }),
        ("up without failed Pods", Cpu { current: 2, levels: Both(&[500, 700]), unready: &[2, 3], phases: FAILED, pods: Some(4), expected: Ok((4, 60, 1_200)), ..Cpu::default() }),
        ("up by a container without failed Pods", Cpu { current: 2, levels: two_second, unready: &[2, 3], phases: FAILED, pods: Some(4), container: second, expected: Ok((4, 60, 600)), ..Cpu::default() }),
        ("up, missing containers of failed Pods", Cpu { current: 2, levels: Each(&[&[1_000, 500], &[9_000, 700], &[1_000], &[9_000]]), unready: &[2, 3], phases: FAILED, pods: Some(4), container: second, expected: Ok((4, 60, 600)), ..Cpu::default() }),
        ("up without deleted Pods", Cpu { current: 2, levels: Both(&[500, 700]), unready: &[2, 3], deleted: &[2, 3], pods: Some(4), expected: Ok((4, 60, 1_200)), ..Cpu::default() }),
        ("up by a container without deleted Pods", Cpu { current: 2, levels: Both(&[500, 700]), unready: &[2, 3], deleted: &[2, 3], pods: Some(4), container: Some("container1"), expected: Ok((4, 60, 600)), ..Cpu::default() }),
        ("scale down", Cpu { current: 5, levels: five, target: 50, expected: Ok((3, 28, 560)), ..Cpu::default() }),
        ("scale down by a container", Cpu { current: 5, levels: five_second, target: 50, container: second, expected: Ok((3, 28, 280)), ..Cpu::default() }),
        ("down without unready Pods", Cpu { current: 5, levels: five, target: 50, unready: &[3, 4], expected: Ok((2, 30, 600)), ..Cpu::default() }),
        ("down by a container without unready Pods", Cpu { current: 5, levels: five_second, target: 50, unready: &[3, 4], container: second, expected: Ok((2, 30, 300)), ..Cpu::default() }),
        ("down without unscheduled Pods", Cpu { current: 5, levels: Both(&[100]), target: 50, unready: &[1, 2, 3, 4], phases: PENDING, expected: Ok((1, 10, 200)), ..Cpu::default() }),
        ("down by a container without unscheduled Pods", Cpu { current: 5, levels: five_second, target: 50, unready: &[1, 2, 3, 4], phases: PENDING, container: second, expected: Ok((1, 10, 100)), ..Cpu::default() }),
        ("down without hot Pods", Cpu { current: 5, levels: five, target: 50, started: &[COOL, COOL, COOL, HOT, HOT], expected: Ok((2, 30, 600)), ..Cpu::default() }),
        ("down by a container without hot Pods", Cpu { current: 5, levels: Each(&[&[1_000, 100], &[1_000, 300], &[1_000, 500], &[1_000, 1_000], &[1_000, 1_000]]), target: 50, started: &[COOL, COOL, COOL, HOT, HOT], container: second, expected: Ok((2, 30, 300)), ..Cpu::default() }),
        ("down without failed Pods", Cpu { current: 5, levels: five, target: 50, unready: &[5, 6], phases: FAILED_LATER, pods: Some(7), expected: Ok((3, 28, 560)), ..Cpu::default() }),
        ("down by a container without failed Pods", Cpu { current: 5, levels: five_second, target: 50, unready: &[5, 6], phases: FAILED_LATER, pods: Some(7), container: second, expected: Ok((3, 28, 280)), ..Cpu::default() }),
        ("down without deleted Pods", Cpu { current: 5, levels: five, target: 50, unready: &[5, 6], deleted: &[5, 6], pods: Some(7), expected: Ok((3, 28, 560)), ..Cpu::default() }),
        ("down by a container without deleted Pods", Cpu { current: 5, levels: five_second, target: 50, unready: &[5, 6], deleted: &[5, 6], pods: Some(7), container: second, expected: Ok((3, 28, 280)), ..Cpu::default() }),
        ("within the tolerance", Cpu { levels: Both(&[1_010, 1_030, 1_020]), requests: mixed, target: 100, expected: Ok((3, 102, 2_040)), ..Cpu::default() }),
        ("outside of no tolerance", Cpu { levels: Both(&[909, 1_010, 1_111]), requests: mixed, target: 100, tolerances: tolerances(0.0, 0.0), expected: Ok((4, 101, 2_020)), ..Cpu::default() }),
        ("within an upper tolerance of 200 %", Cpu { levels: Both(&[1_890, 1_910, 1_900]), requests: mixed, target: 100, tolerances: tolerances(0.1, 2.0), expected: Ok((3, 190, 3_800)), ..Cpu::default() }),
        ("outside of an upper tolerance of 8 %", Cpu { levels: Both(&[1_100, 1_080, 1_090]), requests: mixed, target: 100, tolerances: tolerances(2.0, 0.08), expected: Ok((4, 109, 2_180)), ..Cpu::default() }),
        ("within a lower tolerance of 36 %", Cpu { levels: Both(&[660, 640, 650]), requests: mixed, target: 100, tolerances: tolerances(0.36, 0.1), expected: Ok((3, 65, 1_300)), ..Cpu::default() }),
        ("outside of a lower tolerance of 34 %", Cpu { levels: Both(&[660, 640, 650]), requests: mixed, target: 100, tolerances: tolerances(0.34, 0.1), expected: Ok((2, 65, 1_300)), ..Cpu::default() }),
        ("superfluous metrics", Cpu { current: 4, levels: Both(&[4_000, 9_500, 3_000, 7_000, 3_200, 2_000]), target: 100, expected: Ok((24, 587, 11_750)), ..Cpu::default() }),
        ("missing metrics", Cpu { current: 4, levels: Both(&[400, 95]), target: 100, expected: Ok((3, 24, 495)), ..Cpu::default() }),
        ("a missing request", Cpu { current: 1, levels: Both(&[200]), requests: &[], target: 100, expected: Err("missing request for cpu in container container1 of Pod pod-0"), ..Cpu::default() }),
        ("missing metrics at the target", Cpu { current: 2, levels: Both(&[1_000]), target: 100, expected: Ok((2, 100, 2_000)), ..Cpu::default() }),
        ("missing metrics at a target below 100 %", Cpu { current: 2, levels: Both(&[500]), target: 50, expected: Ok((2, 50, 1_000)), ..Cpu::default() }),
        ("missing metrics do not turn a change", Cpu { current: 2, levels: Both(&[400]), target: 50, expected: Ok((2, 40, 800)), ..Cpu::default() }),
        ("missing metrics bring the usage within the tolerance", Cpu { current: 10, levels: Both(&[1_500; 7]), target: 100, expected: Ok((10, 150, 3_000)), ..Cpu::default() }),
        ("fewer Pods than replicas, up", Cpu { current: 10, pods: Some(3), levels: Both(&[2_000; 2]), target: 100, expected: Ok((10, 200, 4_000)), ..Cpu::default() }),
        ("unready Pods bring the usage within the tolerance", Cpu { current: 10, levels: Both(&[1_500; 10]), unready: &[0, 1, 2], target: 100, expected: Ok((10, 150, 3_000)), ..Cpu::default() }),
        ("unready Pods do not matter below the target", Cpu { current: 10, levels: Both(&[950; 7]), unready: &[0, 1, 2], target: 100, expected: Ok((10, 95, 1_900)), ..Cpu::default() }),
        ("an unready Pod at the target", Cpu { levels: Both(&[300, 300, 300]), unready: &[0], expected: Ok((3, 30, 600)), ..Cpu::default() }),
        ("missing metrics above the target", Cpu { current: 2, levels: Both(&[1_900]), target: 100, expected: Ok((2, 190, 3_800)), ..Cpu::default() }),
        ("missing metrics below the target", Cpu { current: 2, levels: Both(&[600]), target: 100, expected: Ok((2, 60, 1_200)), ..Cpu::default() }),
        ("missing and unready, no change", Cpu { levels: Both(&[100, 450]), unready: &[0], target: 50, expected: Ok((3, 45, 900)), ..Cpu::default() }),
        ("missing and hot, no change", Cpu { levels: Both(&[100, 450]), started: &[HOT, COOL, COOL], target: 50, expected: Ok((3, 45, 900)), ..Cpu::default() }),
        ("missing and unready, up", Cpu { levels: Both(&[100, 2_000]), unready: &[0], target: 50, expected: Ok((4, 200, 4_000)), ..Cpu::default() }),
        ("missing and hot, up", Cpu { levels: Both(&[100, 2_000]), unready: &[0], started: &[HOT, COOL, COOL], target: 50, expected: Ok((4, 200, 4_000)), ..Cpu::default() }),
        ("missing and unready, down", Cpu { current: 4, levels: Both(&[100, 100, 100]), unready: &[0], target: 50, expected: Ok((3, 10, 200)), ..Cpu::default() }),
        ("missing, down to a target above 100 %", Cpu { current: 4, levels: Both(&[200, 100, 100]), requests: &[1_000, 1_000, 2_000, 2_000], unready: &[0], target: 300, expected: Ok((2, 6, 200)), ..Cpu::default() }),
        ("a surge of a rolling update", Cpu { current: 2, levels: Both(&[100, 100]), target: 50, pods: Some(3), expected: Ok((2, 10, 200)), ..Cpu::default() }),
        ("all Pods unready", Cpu { levels: Both(&[300, 500, 700]), unready: &[0, 1, 2], expected: Err("did not receive metrics for targeted pods (pods might be unready)"), ..Cpu::default() }),
        ("no Pods", Cpu { levels: Both(&[300]), pods: Some(0), expected: Err("no pods returned by selector while calculating replica count"), ..Cpu::default() }),
    ];
    for (name, case) in cases {
        let expected = case.expected.map_err(str::to_owned);
        assert_eq!(case.compute(), expected, "{name}");
    }
}

/// Checks H1.
#[test]
fn three_replicas_at_twice_their_target_become_six() {
    let case = Cpu {
        levels: Both(&[1_400, 1_400, 1_400]),
        target: 70,
        expected: Ok((6, 140, 2_800)),
        ..Cpu::default()
    };
    assert_eq!(case.compute(), Ok((6, 140, 2_800)));
}

#[test]
fn metrics_of_other_pods_than_those_selected_are_no_metrics() {
    let case = Cpu {
        current: 1,
        levels: Both(&[100]),
        target: 100,
        ..Cpu::default()
    };
    let pods = [Arc::new(case.pod(7))];
    let settings = settings();
    let calculator = Calculator {
        pods: &pods,
        current: 1,
        observed: 1,
        tolerances: DEFAULT,
        settings: &settings,
        now: now(),
    };
    let computed = calculator.utilization(case.samples(), "cpu", None, 100);
    assert_eq!(
        computed,
        Err("no metrics returned matched known pods".to_owned())
    );
}

/// Upstream's `TestReplicaCalcComputedToleranceAlgImplementation`: 10 Pods that use half of what they request.
#[test]
fn the_smallest_change_is_that_which_leaves_the_tolerance() {
    let spread = [100, -100, 10, -10, 2, -2, 1, -1, 0, 0];
    let case = |target, expected| Cpu {
        current: 10,
        levels: Both(&[150; 10]),
        requests: &[400, 200, 310, 290, 302, 298, 301, 299, 300, 300],
        target,
        expected: Ok((expected, 50, 300)),
        ..Cpu::default()
    };
    assert_eq!(spread.map(|by| 300 + by), case(0, 0).requests);
    for (target, expected) in [(56, 9), (55, 10)] {
        let case = case(target, expected);
        assert_eq!(case.compute().map_err(|_| ""), case.expected);
    }
}

/// Returns a calculator's answer for a number of Pods of which some are unready.
fn with_pods<T>(
    (current, unready): (i32, &[usize]),
    tolerances: Tolerances,
    compute: impl FnOnce(&Calculator<'_>) -> T,
) -> T {
    let case = Cpu {
        current,
        unready,
        ..Cpu::default()
    };
    let (pods, settings) = (case.pods(), settings());
    compute(&Calculator {
        pods: &pods,
        current,
        observed: current,
        tolerances,
        settings: &settings,
        now: now(),
    })
}

fn custom(levels: &[i64]) -> Samples {
    let sample = |(index, value): (usize, &i64)| {
        let sample = Sample {
            value: *value,
            at: Timestamp::MIN,
            window: Duration::from_secs(60),
        };
        (format!("pod-{index}"), sample)
    };
    levels.iter().enumerate().map(sample).collect()
}

const TIGHT: Tolerances = Tolerances {
    down: 0.1,
    up: 0.01,
};

/// Checks H1.
#[test]
fn replicas_follow_from_averages_of_custom_metrics_as_upstream_computes_them() {
    // Replicas, unready Pods, values, target, tolerances; replicas, average. Readiness does not matter.
    #[rustfmt::skip]
    let cases: &[(i32, &[usize], &[i64], i64, Tolerances, (i32, i64))] = &[
        (3, &[], &[20_000, 10_000, 30_000], 15_000, DEFAULT, (4, 20_000)),
        (3, &[2], &[50_000, 10_000, 30_000], 15_000, DEFAULT, (6, 30_000)),
        (3, &[0, 2], &[50_000, 15_000, 30_000], 15_000, DEFAULT, (7, 31_666)),
        (1, &[], &[8_600], 4_400, DEFAULT, (2, 8_600)),
        (5, &[], &[12_000; 5], 20_000, DEFAULT, (3, 12_000)),
        (3, &[], &[20_000, 21_000, 21_000], 20_000, DEFAULT, (3, 20_666)),
        (3, &[], &[20_000, 21_000, 21_000], 20_000, TIGHT, (4, 20_666)),
        // Missing metrics.
        (5, &[], &[20_000, 19_000, 21_000], 20_000, DEFAULT, (5, 20_000)),
    ];
    for (current, unready, levels, target, tolerances, expected) in cases {
        let compute = |calculator: &Calculator<'_>| calculator.average(custom(levels), "", *target);
        let usage = with_pods((*current, unready), *tolerances, compute).unwrap();
        assert_eq!((usage.replicas, usage.value), *expected, "{levels:?}");
    }
    let surge = |calculator: &Calculator<'_>| {
        let calculator = Calculator {
            current: 2,
            ..*calculator
        };
        calculator.average(custom(&[10_000, 10_000]), "", 17_000)
    };
    let usage = with_pods((3, &[]), DEFAULT, surge).unwrap();
    assert_eq!((usage.replicas, usage.value), (2, 10_000), "a surge");
}

/// Checks H1.
#[test]
fn replicas_follow_from_values_as_upstream_computes_them() {
    // Replicas, unready Pods, value, target, tolerances; replicas.
    #[rustfmt::skip]
    let cases: &[(i32, &[usize], i64, i64, Tolerances, i32)] = &[
        (3, &[], 20_000, 15_000, DEFAULT, 4),
        (3, &[0, 2], 50_000, 10_000, DEFAULT, 5),
        (3, &[0, 2], 8_600, 4_400, DEFAULT, 2),
        (5, &[], 12_000, 20_000, DEFAULT, 3),
        (5, &[], 8_600, 14_334, DEFAULT, 3),
        (3, &[], 20_666, 20_000, DEFAULT, 3),
        (3, &[], 8_600, 8_888, DEFAULT, 3),
        (3, &[], 20_666, 20_000, TIGHT, 4),
        (3, &[], 8_900, 8_800, TIGHT, 4),
        // The bounds of the tolerance belong to it.
        (10, &[], 22_000, 20_000, DEFAULT, 10),
        (10, &[], 18_000, 20_000, DEFAULT, 10),
        (3, &[], i64::MAX, 1, DEFAULT, i32::MAX),
        (3, &[], i64::MAX, i64::MAX, DEFAULT, 3),
        // From no replicas, without a tolerance.
        (0, &[], 20_000, 15_000, DEFAULT, 2),
        (0, &[], 100, 1_000, DEFAULT, 1),
        (0, &[], 0, 1_000, DEFAULT, 0),
    ];
    for (current, unready, value, target, tolerances, expected) in cases {
        let compute = |calculator: &Calculator<'_>| calculator.value(*value, *target);
        let usage = with_pods((*current, unready), *tolerances, compute).unwrap();
        assert_eq!(
            (usage.replicas, usage.value),
            (*expected, *value),
            "{value}"
        );
    }
    let none = |calculator: &Calculator<'_>| {
        let calculator = Calculator {
            pods: &[],
            ..*calculator
        };
        calculator.value(9, 1)
    };
    let message = "unable to calculate ready pods: no pods returned by selector while calculating replica count";
    assert_eq!(with_pods((3, &[]), DEFAULT, none), Err(message.to_owned()));
}

/// Checks H1.
#[test]
fn replicas_follow_from_values_per_replica_as_upstream_computes_them() {
    // Replicas, value, target, tolerances; replicas and average.
    #[rustfmt::skip]
    let cases: &[(i32, i64, i64, Tolerances, (i32, i64))] = &[
        (3, 20_000, 5_000, DEFAULT, (4, 6_667)),
        (3, 8_600, 2_150, DEFAULT, (4, 2_867)),
        (5, 6_000, 2_000, DEFAULT, (3, 1_200)),
        (5, 8_600, 2_867, DEFAULT, (3, 1_720)),
        (4, 20_166, 5_000, DEFAULT, (4, 5_042)),
        (3, 8_600, 2_900, DEFAULT, (3, 2_867)),
        (4, 20_208, 5_000, TIGHT, (5, 5_052)),
        (3, 8_600, 2_800, TIGHT, (4, 2_867)),
        (1, i64::MAX, 1, DEFAULT, (i32::MAX, i64::MAX)),
        (3, i64::MAX, 1, DEFAULT, (i32::MAX, i64::MAX)),
        (1, i64::MAX, i64::MAX, DEFAULT, (1, i64::MAX)),
        // Without replicas.
        (0, 0, 1_000, DEFAULT, (0, 0)),
        (0, 1_500, 1_000, DEFAULT, (2, i64::MAX)),
    ];
    for (current, value, target, tolerances, expected) in cases {
        let compute = |calculator: &Calculator<'_>| calculator.value_per_replica(*value, *target);
        let usage: Usage = with_pods((*current, &[]), *tolerances, compute);
        assert_eq!((usage.replicas, usage.value), *expected, "{value}");
    }
}

/// Upstream's `TestGroupPods`.
#[test]
fn pods_are_grouped_by_what_their_metrics_mean() {
    let with = |phase, started: Option<u64>, ready: Option<(bool, u64)>| {
        let mut pod = pod("a");
        pod.phase = phase;
        pod.started = started.map(ago);
        pod.readiness = ready.map(|(ready, seconds)| Readiness {
            ready: Some(ready),
            since: ago(seconds),
        });
        pod
    };
    let sample = |at, window| Sample {
        value: 1,
        at,
        window: Duration::from_secs(window),
    };
    let (fresh, old) = (
        |window| Some(sample(now(), window)),
        Some(sample(Timestamp::MIN, 0)),
    );
    let deleted = {
        let mut pod = with(Phase::Pending, None, None);
        pod.meta.deleting = true;
        pod
    };
    let other = Phase::Other;
    #[rustfmt::skip]
    let cases = [
        ("ready", "memory without a condition", with(other, None, None), fresh(60), "memory"),
        ("unready", "no condition", with(other, Some(0), None), old, "cpu"),
        ("unready", "not started", with(other, None, Some((true, 30))), fresh(30), "cpu"),
        ("ready", "fresh metrics", with(other, Some(60), Some((true, 30))), fresh(30), "cpu"),
        ("unready", "metrics from before it was ready", with(other, Some(60), Some((true, 30))), fresh(60), "cpu"),
        ("unready", "unready during initialization", with(other, Some(60), Some((false, 30))), fresh(1), "cpu"),
        ("unready", "never ready", with(other, Some(600), Some((false, 594))), old, "cpu"),
        ("ready", "unready after it was ready", with(other, Some(600), Some((false, 540))), old, "cpu"),
        ("ready", "unready at the end of initialization", with(other, Some(120), Some((false, 30))), old, "cpu"),
        ("ready", "unready at the end of the delay", with(other, Some(600), Some((false, 590))), old, "cpu"),
        ("missing", "no sample", with(other, Some(180), None), None, "cpu"),
        ("unready", "pending", with(Phase::Pending, None, None), None, "cpu"),
        ("ignored", "deleted", deleted, old, "cpu"),
        ("ignored", "failed", with(Phase::Failed, None, None), old, "cpu"),
    ];
    for (expected, name, pod, sample, resource) in cases {
        let pods = [Arc::new(pod)];
        let settings = settings();
        let calculator = Calculator {
            pods: &pods,
            current: 1,
            observed: 1,
            tolerances: DEFAULT,
            settings: &settings,
            now: now(),
        };
        let samples = sample.map(|sample| ("a".to_owned(), sample));
        let samples: Samples = samples.into_iter().collect();
        let groups = calculator.group(&samples, resource);
        let one = BTreeSet::from(["a"]);
        let found = [
            ("ready", groups.ready == 1),
            ("unready", groups.unready == one),
            ("missing", groups.missing == one),
            ("ignored", groups.ignored == one),
        ];
        let found: Vec<_> = found
            .iter()
            .filter(|(_, is)| *is)
            .map(|(group, _)| *group)
            .collect();
        assert_eq!(found, [expected], "{name}");
    }
}

/// Upstream's `TestCalculateRequests`.
#[test]
fn the_request_of_a_pod_is_that_of_its_containers_or_of_itself() {
    use serde_json::json;
    use setpoint_controller::View as _;
    let view = |spec: serde_json::Value| {
        let json =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
        PodView::of(serde_json::from_value(json).unwrap())
    };
    let container =
        |name: &str, cpu: &str| json!({"name": name, "resources": {"requests": {"cpu": cpu}}});
    let both = json!([container("one", "100m"), container("two", "50m")]);
    let plain = view(json!({"containers": both}));
    let whole = view(json!({"containers": both, "resources": {"requests": {"cpu": "800m"}}}));
    let incomplete = json!([{"name": "one"}, container("two", "50m")]);
    let missing = view(json!({"containers": incomplete}));
    let covered =
        view(json!({"containers": incomplete, "resources": {"requests": {"cpu": "800m"}}}));
    let mut sidecar = container("sidecar", "50m");
    sidecar["restartPolicy"] = "Always".into();
    let inits = json!([container("init", "20m"), sidecar]);
    let sidecar = view(json!({"containers": [container("one", "100m")], "initContainers": inits}));
    let expected = [
        (&plain, None, Ok(150)),
        (&plain, Some("one"), Ok(100)),
        (
            &plain,
            Some("three"),
            Err("container three not found in Pod a"),
        ),
        (&whole, None, Ok(800)),
        (&whole, Some("one"), Ok(100)),
        (
            &missing,
            None,
            Err("missing request for cpu in container one of Pod a"),
        ),
        (&covered, None, Ok(800)),
        (&sidecar, None, Ok(150)),
    ];
    for (pod, container, request) in expected {
        let found = pod.request("cpu", container);
        assert_eq!(found, request.map_err(str::to_owned), "{container:?}");
    }
    let memory = "missing pod-level request for memory in Pod a";
    assert_eq!(whole.request("memory", None), Err(memory.to_owned()));
}
