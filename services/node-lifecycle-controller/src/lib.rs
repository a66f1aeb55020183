//! Two controllers: one judges the health of nodes and taints those that are not healthy, the other deletes the Pods
//! that do not tolerate the taints of their node.
//!
//! ```text
//! Leases, status of nodes ─▶ silent for the grace period ─▶ conditions Unknown ─▶ taints NoSchedule, and NoExecute as fast
//!                            (by a clock of this process)    Pods not ready       as the state of the zone allows
//! taints NoExecute, tolerations of the Pods of the node  ─▶ wait tolerationSeconds ─▶ DisruptionTarget ─▶ deletion
//! ```
//! No decision compares a time that another process wrote: a node is heard when its Lease or its heartbeat changes.
//! What was heard is kept in memory, so that a new leader, as after an absence of the gateway, gives every node and
//! every Pod the full time again.
//!
//! The clock stands still while its process is suspended. Before a node is marked as Unknown its Lease is read, and
//! before a Pod is evicted the taints of its node are, so that a cache that lags costs no Pod. Only nodes that are not
//! healthy are reconciled, in batches of one snapshot: the state of a zone, and the next node at the rate of the zone,
//! are parts of each decision. While no node of any zone is ready, no Pod is evicted.

mod act;
mod awake_clock;
mod eviction;
mod health;
mod node;
mod plan;
mod pod;
mod reconciler;
mod registered;
mod settings;
mod taints;
mod world;
mod zone;

pub use awake_clock::AwakeClock;
pub use eviction::{
    Action as EvictionAction, CONTROLLER as TAINT_EVICTION, Evictions, Stay,
    World as EvictionWorld, plan as plan_eviction,
};
pub use health::{Health, LeaseView, Signs};
pub use node::{NodeView, Ready};
pub use plan::{Action, Conditions, plan};
pub use pod::PodView;
pub use reconciler::{CONTROLLER, Nodes};
pub use settings::Lifecycle;
pub use taints::TaintChange;
pub use world::World;
pub use zone::{EvictionLimits, Zone, ZoneState, Zones};
