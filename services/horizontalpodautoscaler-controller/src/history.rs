//! The history of an autoscaler: what was recommended, and what was changed.
//!
//! It is in the memory of the leader, as upstream's. A new leader begins with the current replicas as first
//! recommendation, so that it does not remove replicas before a window has passed.
#![warn(clippy::arithmetic_side_effects)]

use std::time::Duration;

use jiff::Timestamp;
use setpoint_model::time;

use crate::{Behavior, Rules};

/// The largest number of recommendations that are kept: one each second of the longest window, which is an hour.
pub const MAX_RECOMMENDATIONS: usize = 3_600;
/// The largest number of changes that are kept of each direction.
pub const MAX_SCALE_EVENTS: usize = 1_000;

/// The recommendations and changes of an autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The oldest first.
    recommendations: Vec<Recommendation>,
    /// Changes to more replicas, the oldest first.
    ups: Vec<Change>,
    /// Changes to fewer replicas, the oldest first.
    downs: Vec<Change>,
    /// The time of the last change.
    last_scale: Option<Timestamp>,
}

/// Replicas that the metrics asked for, and when they did so last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recommendation {
    pub replicas: i32,
    pub at: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    replicas: i32,
    at: Timestamp,
}

impl History {
    /// Returns a history that begins with the current replicas.
    pub fn starting_at(replicas: i32, now: Timestamp) -> Self {
        let mut history = Self::default();
        history.start(replicas, now);
        history
    }

    /// Adds the current replicas as first recommendation if there is none.
    pub fn start(&mut self, replicas: i32, now: Timestamp) {
        if self.recommendations.is_empty() {
            self.recommend(replicas, now, Duration::ZERO);
        }
    }

    /// Adds a recommendation, and forgets those before the longest `window`.
    ///
    /// Of consecutive equal ones the last is kept, which is enough for the largest and the smallest within any window.
    pub fn recommend(&mut self, replicas: i32, now: Timestamp, window: Duration) {
        let all = &mut self.recommendations;
        if all.last().is_some_and(|last| last.replicas == replicas) {
            all.pop();
        }
        let old = all.partition_point(|one| time::after(one.at, window) < now);
        all.drain(..old);
        all.push(Recommendation { replicas, at: now });
        let surplus = all.len().saturating_sub(MAX_RECOMMENDATIONS);
        all.drain(..surplus);
    }

    /// Adds a change of the replicas. Those of both directions are kept for as long as a policy of theirs counts them.
    pub fn scaled(&mut self, from: i32, to: i32, now: Timestamp, behavior: Option<&Behavior>) {
        self.last_scale = Some(now);
        let Some(behavior) = behavior else { return };
        let change = |replicas| Change { replicas, at: now };
        match to > from {
            true => store(&mut self.ups, change(to.saturating_sub(from)), &behavior.up),
            false => store(
                &mut self.downs,
                change(from.saturating_sub(to)),
                &behavior.down,
            ),
        }
    }

    /// Returns the time of the last change.
    pub fn last_scale(&self) -> Option<Timestamp> {
        self.last_scale
    }

    /// Returns the recommendations, the oldest first.
    pub(crate) fn recommendations(&self) -> impl Iterator<Item = Recommendation> {
        self.recommendations.iter().copied()
    }

    /// Returns the replicas before the changes of the last period.
    pub fn at_start_of(&self, period: Duration, current: i32, now: Timestamp) -> i32 {
        let within = |changes: &[Change]| {
            let recent = changes
                .iter()
                .filter(|change| time::after(change.at, period) > now);
            recent.fold(0_i32, |sum, change| sum.saturating_add(change.replicas))
        };
        current
            .saturating_sub(within(&self.ups))
            .saturating_add(within(&self.downs))
    }

    /// Returns the numbers of recommendations and of changes that are kept.
    pub fn len(&self) -> (usize, usize) {
        let changes = self.ups.len().saturating_add(self.downs.len());
        (self.recommendations.len(), changes)
    }
}

fn store(changes: &mut Vec<Change>, change: Change, rules: &Rules) {
    let period = rules.longest_period();
    let old = changes.partition_point(|one| time::after(one.at, period) < change.at);
    changes.drain(..old);
    changes.push(change);
    if changes.len() > MAX_SCALE_EVENTS {
        // The sum of all periods stays the same, or is greater for a while.
        let oldest = changes.remove(0);
        changes[0].replicas = changes[0].replicas.saturating_add(oldest.replicas);
    }
}
