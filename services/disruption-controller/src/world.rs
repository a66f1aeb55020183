//! Observe: takes a snapshot of a budget, its Pods, and what their controllers want.

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_workload::PodView;

use crate::{BudgetView, Scales};

/// Everything that plan and status depend on.
#[derive(Clone, Debug)]
pub struct World {
    /// The budget.
    pub budget: Arc<BudgetView>,
    /// The Pods that it selects, in the order of their names.
    pub pods: Vec<Arc<PodView>>,
    /// The scales of the controllers of the Pods, or why they are not known; zero if the budget does not need them.
    pub scales: Result<Scales, String>,
    /// The current time.
    pub now: Timestamp,
}
