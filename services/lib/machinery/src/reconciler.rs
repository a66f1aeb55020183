//! What a controller is: two steps that touch the world, and two that only think.

use std::fmt::Debug;
use std::future::Future;

use setpoint_model::{Key, Meta};
use setpoint_proto::ApiError;

use crate::{Gateway, Outcome, Plan, Receipt, Subject};

/// A controller is *observe → plan → act → status*.
///
/// It never learns why it runs, and looks only at its caches: whatever woke it, the same world gives the same plan.
pub trait Reconciler: Send + Sync + 'static {
    /// Everything a decision may look at, time and randomness included.
    type World: Send + Sync;
    /// One idempotent write, as data.
    type Action: Debug + Send + Sync;
    /// What to report.
    type Status: Send + Sync;

    /// Observe: a snapshot of the caches. `None` means that the object is gone.
    fn observe(&self, key: &Key) -> Option<Self::World>;

    /// The object that the round is about, as it was observed; for whoever reads traces.
    fn meta(_world: &Self::World) -> Option<&Meta> {
        None
    }

    /// Decide: total and deterministic. Without `self` there is nothing to do I/O with.
    fn plan(world: &Self::World) -> Plan<Self::Action>;

    /// The other object that an action creates, changes or deletes, for those who ask what became of that.
    fn touches(_: &Self::World, _: &Self::Action) -> Option<Subject> {
        None
    }

    /// Carry out one action through this gateway, which fences it; `Receipt::none()` if nothing had to be written.
    fn act(
        &self,
        gateway: &Gateway,
        world: &Self::World,
        action: &Self::Action,
    ) -> impl Future<Output = Result<Receipt, ApiError>> + Send;

    /// What to tell the user, or `None` if they already know. Pure, like `plan`.
    fn status(world: &Self::World, outcome: &Outcome) -> Option<Self::Status>;

    /// Tell the user.
    fn report(
        &self,
        gateway: &Gateway,
        world: &Self::World,
        status: Self::Status,
    ) -> impl Future<Output = Result<Receipt, ApiError>> + Send;
}
