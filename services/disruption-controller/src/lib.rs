//! The PodDisruptionBudget controller: computes how many evictions each budget allows. The gateway refuses the others.
//!
//! ```text
//! fetch:    the scales of the controllers of the selected Pods, if the budget is relative to them
//! status:   Pods, scales ─▶ expected, desired and current healthy Pods ─▶ allowed disruptions
//! ```
//! It writes the status of budgets and nothing else. An eviction uses up a disruption and records its Pod in the
//! status, in one write; the Pod does not count as healthy from then on, even before its deletion is seen here.

mod budget;
mod reconciler;
mod scale;
mod status;
mod world;

pub use budget::{BudgetView, Rule};
pub use reconciler::{Budgets, CONTROLLER};
pub use scale::Scales;
pub use status::{plan, status, warning};
pub use world::World;
