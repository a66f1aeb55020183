//! Runs the Pods that are bound to its nodes, and reports how they fare.
//!
//! ```text
//! watch: Pods of its nodes ─┐
//! runtime: something changed ┴▶ queue ─▶ observe → plan → act, until nothing is left ─▶ status ─▶ gateway
//! ```
//! The runtime holds what is, the gateway what should be; the agent itself remembers nothing that a restart would lose.

mod act;
mod agent;
mod downward;
mod duration;
mod environment;
mod expand;
mod fields;
mod ledger;
mod logs;
mod metrics;
mod node;
mod plan;
mod pod;
mod request;
mod restart;
pub mod runtime;
mod settings;
mod start;
mod status;
mod subcommand;
mod tell;
mod volumes;
mod world;

pub use ledger::{Admission, Shortage};
pub use plan::{Action, plan};
pub use settings::{Capacity, Kind, Settings, Switch};
pub use start::start;
pub use status::status;
pub use subcommand::subcommand;
pub use world::{Bound, Last, Past, Trouble, World};
