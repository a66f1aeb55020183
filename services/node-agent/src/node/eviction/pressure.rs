//! Decides from observations which thresholds are met, and for how long. Pure.
//!
//! ```text
//! observation ─▶ met: less than the threshold, or than its minimum reclaim beyond it once it was met
//!                 │
//!                 ├─▶ pressure, until it was not met for the transition period
//!                 └─▶ due, once it was met for its grace period
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::threshold::{Signal, Size, Threshold};
use crate::node::Pressure;

/// The available amount of a resource of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Bytes or files.
    pub available: i64,
    /// Bytes or files.
    pub capacity: i64,
}

/// The observations of one moment. A signal that cannot be read is absent.
pub type Observations = BTreeMap<Signal, Observation>;

/// The state of the thresholds at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assessment {
    /// The met thresholds, and since when.
    met: Vec<(Threshold, Instant)>,
    /// The time at which a threshold of each pressure was last met.
    last: BTreeMap<Pressure, Instant>,
    /// The pressures of the node.
    pub pressures: BTreeSet<Pressure>,
    /// The thresholds that Pods are to be evicted for, in the order in which they are reclaimed.
    pub due: Vec<Threshold>,
}

/// Returns the state of the thresholds after an earlier one.
pub fn assess(
    before: &Assessment,
    thresholds: &[Threshold],
    observations: &Observations,
    transition: Duration,
    now: Instant,
) -> Assessment {
    let met = thresholds.iter().filter_map(|threshold| {
        let since = before.since(threshold);
        let observation = observations.get(&threshold.signal)?;
        is_met(threshold, since.is_some(), *observation)
            .then_some((*threshold, since.unwrap_or(now)))
    });
    let met: Vec<_> = met.collect();
    let mut last = before.last.clone();
    last.extend(
        met.iter()
            .map(|(threshold, _)| (threshold.signal.pressure(), now)),
    );
    last.retain(|_, at| *at == now || now.saturating_duration_since(*at) < transition);
    let is_due = |(threshold, since): &&(Threshold, Instant)| {
        now.saturating_duration_since(*since) >= threshold.grace.unwrap_or_default()
    };
    let mut due: Vec<_> = met
        .iter()
        .filter(is_due)
        .map(|(threshold, _)| *threshold)
        .collect();
    due.sort_by_key(|threshold| threshold.signal);
    Assessment {
        pressures: last.keys().copied().collect(),
        met,
        last,
        due,
    }
}

impl Assessment {
    fn since(&self, threshold: &Threshold) -> Option<Instant> {
        let mut met = self.met.iter();
        met.find(|(known, _)| known == threshold)
            .map(|(_, since)| *since)
    }
}

fn is_met(threshold: &Threshold, before: bool, observation: Observation) -> bool {
    let Observation {
        available,
        capacity,
    } = observation;
    let reclaim = threshold.reclaim.filter(|_| before);
    let reclaim = reclaim.map_or(0, |reclaim: Size| reclaim.of(capacity));
    available < threshold.size.of(capacity).saturating_add(reclaim)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRANSITION: Duration = Duration::from_secs(300);

    fn threshold(signal: Signal, bytes: i64, grace: u64) -> Threshold {
        Threshold {
            signal,
            size: Size::Absolute(bytes),
            grace: (grace > 0).then(|| Duration::from_secs(grace)),
            reclaim: None,
        }
    }

    fn observe(signal: Signal, available: i64) -> Observations {
        let capacity = 1000;
        [(
            signal,
            Observation {
                available,
                capacity,
            },
        )]
        .into()
    }

    /// Assesses observations of memory, each with its second, and returns whether the last one leaves pressure, and
    /// the number of thresholds that are due.
    fn course(threshold: Threshold, course: &[(u64, i64)]) -> (bool, usize) {
        let start = Instant::now();
        let mut assessment = Assessment::default();
        for (second, available) in course {
            let now = start + Duration::from_secs(*second);
            let observations = observe(threshold.signal, *available);
            assessment = assess(&assessment, &[threshold], &observations, TRANSITION, now);
        }
        let pressure = assessment.pressures.contains(&threshold.signal.pressure());
        (pressure, assessment.due.len())
    }

    #[test]
    fn a_hard_threshold_is_due_at_once_and_leaves_pressure_for_the_transition_period() {
        let hard = threshold(Signal::Memory, 100, 0);
        assert_eq!(course(hard, &[(0, 100)]), (false, 0));
        assert_eq!(course(hard, &[(0, 99)]), (true, 1));
        assert_eq!(course(hard, &[(0, 99), (10, 100)]), (true, 0));
        assert_eq!(course(hard, &[(0, 99), (299, 100)]), (true, 0));
        assert_eq!(course(hard, &[(0, 99), (300, 100)]), (false, 0));
    }

    #[test]
    fn a_soft_threshold_is_due_after_its_grace_period_without_a_break() {
        let soft = threshold(Signal::Nodefs, 100, 60);
        assert_eq!(course(soft, &[(0, 99), (59, 99)]), (true, 0));
        assert_eq!(course(soft, &[(0, 99), (60, 99)]), (true, 1));
        assert_eq!(course(soft, &[(0, 99), (30, 100), (60, 99)]), (true, 0));
    }

    #[test]
    fn a_met_threshold_stays_met_until_its_minimum_is_reclaimed() {
        let reclaim = Threshold {
            reclaim: Some(Size::Percent(5.0)),
            ..threshold(Signal::Imagefs, 100, 0)
        };
        assert_eq!(
            course(reclaim, &[(0, 120)]),
            (false, 0),
            "it was not met before"
        );
        assert_eq!(course(reclaim, &[(0, 99), (10, 149)]), (true, 1));
        assert_eq!(course(reclaim, &[(0, 99), (10, 150)]), (true, 0));
    }

    #[test]
    fn memory_is_reclaimed_before_disks() {
        let all = [Signal::Imagefs, Signal::Nodefs, Signal::Memory];
        let thresholds = all.map(|signal| threshold(signal, 1000, 0));
        let observations = all.iter().flat_map(|signal| observe(*signal, 1)).collect();
        let now = Instant::now();
        let assessment = assess(
            &Assessment::default(),
            &thresholds,
            &observations,
            TRANSITION,
            now,
        );
        let due: Vec<_> = assessment.due.iter().map(|one| one.signal).collect();
        assert_eq!(due, [Signal::Memory, Signal::Nodefs, Signal::Imagefs]);
    }

    #[test]
    fn without_an_observation_no_threshold_is_met() {
        let thresholds = [threshold(Signal::Memory, 1000, 0)];
        let none = Observations::new();
        let assessment = assess(
            &Assessment::default(),
            &thresholds,
            &none,
            TRANSITION,
            Instant::now(),
        );
        assert_eq!(assessment, Assessment::default());
    }

    proptest! {
        /// A threshold that is due is met by the last observation and comes with pressure; and enough of everything,
        /// for as long as the transition period, ends all of it.
        #[test]
        fn what_is_due_is_short_and_enough_ends_it(
            course in prop::collection::vec((0_u64..100, 0_i64..1000), 1..20),
            bytes in 1_i64..1000,
            grace in 0_u64..200,
        ) {
            let threshold = threshold(Signal::Memory, bytes, grace);
            let (mut now, mut assessment) = (Instant::now(), Assessment::default());
            for (seconds, available) in course {
                now += Duration::from_secs(seconds);
                let observations = observe(Signal::Memory, available);
                assessment = assess(&assessment, &[threshold], &observations, TRANSITION, now);
                let met = available < bytes;
                prop_assert!(assessment.due.is_empty() || met);
                prop_assert!(!met || assessment.pressures.contains(&Pressure::Memory));
            }
            for _ in 0..2 {
                now += TRANSITION;
                let plenty = observe(Signal::Memory, 1000);
                assessment = assess(&assessment, &[threshold], &plenty, TRANSITION, now);
            }
            prop_assert_eq!(assessment, Assessment::default());
        }
    }
}
