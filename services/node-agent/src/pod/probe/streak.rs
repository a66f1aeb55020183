//! Counts equal results of a probe in a row. Pure.

use setpoint_proto::core::Probe;

use crate::pod::health::Health;

/// The newest results of a probe.
#[derive(Debug, Default)]
pub struct Streak {
    passing: Option<bool>,
    length: i32,
}

impl Streak {
    /// Adds a result. Returns the health once as many in a row agree as the probe's threshold requires.
    pub fn add(&mut self, passed: bool, probe: &Probe) -> Option<Health> {
        if self.passing.replace(passed) == Some(passed) {
            self.length = self.length.saturating_add(1);
        } else {
            self.length = 1;
        }
        let (threshold, health) = match passed {
            true => (probe.success_threshold, Health::Passing),
            false => (probe.failure_threshold, Health::Failing),
        };
        (self.length >= threshold).then_some(health)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks N7.
    #[test]
    fn a_probe_changes_its_mind_when_a_threshold_is_reached_in_a_row() {
        let probe = Probe {
            success_threshold: 2,
            failure_threshold: 3,
            ..Probe::default()
        };
        let mut streak = Streak::default();
        let results = [false, false, true, false, false, false, false, true, true];
        let healths = results.map(|passed| streak.add(passed, &probe));
        let (failing, passing) = (Some(Health::Failing), Some(Health::Passing));
        let expected = [
            None, None, None, None, None, failing, failing, None, passing,
        ];
        assert_eq!(healths, expected);
    }
}
