//! Plans: actions and their reasons, as data.

use std::fmt::{self, Debug, Display};
use std::time::Duration;

use setpoint_proto::ApiError;

/// The actions of a reconcile, and when to repeat it without a change.
///
/// The steps do not depend on each other, unless [`CONCURRENCY`](crate::Reconciler::CONCURRENCY) is 1. A plan that
/// needs an order otherwise holds the first part; the next reconcile does the rest.
///
/// ```
/// use std::time::Duration;
///
/// use setpoint_controller::Plan;
///
/// let mut plan = Plan::default();
/// plan.step("Create web-1", "fewer Pods than replicas");
/// plan.look_again(Duration::from_secs(30));
/// plan.look_again(Duration::from_secs(60));
/// assert_eq!(plan.steps[0].because, "fewer Pods than replicas");
/// assert_eq!(plan.again, Some(Duration::from_secs(30)));
/// let text = "\"Create web-1\" because fewer Pods than replicas\nlook again after 30s\n";
/// assert_eq!(plan.to_string(), text);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<A> {
    /// Started in this order.
    pub steps: Vec<Step<A>>,
    /// The time after which the reconcile is repeated without a change.
    pub again: Option<Duration>,
}

/// One action and its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<A> {
    /// One idempotent write.
    pub action: A,
    /// The reason, as a phrase.
    pub because: &'static str,
}

/// Writes a line for each step, with its reason, and one for the repetition.
impl<A: Debug> Display for Plan<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Step { action, because } in &self.steps {
            writeln!(f, "{action:?} because {because}")?;
        }
        match self.again {
            Some(again) => writeln!(f, "look again after {again:?}"),
            None => Ok(()),
        }
    }
}

impl<A> Default for Plan<A> {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            again: None,
        }
    }
}

impl<A> Plan<A> {
    /// Adds a step.
    pub fn step(&mut self, action: A, because: &'static str) {
        self.steps.push(Step { action, because });
    }

    /// Repeats the reconcile after this time, or earlier if that was planned already.
    pub fn look_again(&mut self, after: Duration) {
        self.again = Some(self.again.map_or(after, |again| again.min(after)));
    }

    /// Repeats the reconcile when the first of these waits ends, unless it has ended already.
    pub fn look_again_after(&mut self, waits: impl IntoIterator<Item = Duration>) {
        let waits = waits.into_iter().filter(|wait| !wait.is_zero());
        waits.for_each(|wait| self.look_again(wait));
    }

    /// Returns whether there is no step.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

/// The result of executing a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<A> {
    /// The plan.
    pub plan: Plan<A>,
    /// The error of the first step that failed; no further step was started.
    pub failed: Option<ApiError>,
    /// The number of steps that succeeded.
    pub done: usize,
}

impl<A> Outcome<A> {
    /// Returns the outcome of a plan of which nothing has been executed.
    pub const fn of(plan: Plan<A>) -> Self {
        Self {
            plan,
            failed: None,
            done: 0,
        }
    }
}

impl<A> Default for Outcome<A> {
    fn default() -> Self {
        Self::of(Plan::default())
    }
}
