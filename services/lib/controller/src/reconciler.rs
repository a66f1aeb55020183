//! The steps of a controller: two with I/O, and two pure functions.

use std::fmt::Debug;
use std::future::Future;

use jiff::Timestamp;
use setpoint_model::{Key, Meta};
use setpoint_proto::ApiError;

use crate::{Client, ObjectRef, Outcome, Plan, Receipt};

/// The inputs of an observation that are in no cache.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    /// The time.
    pub now: Timestamp,
    /// A random number, for names. It is repeated until the key is reconciled without a failure: so a create that failed,
    /// and was perhaps committed all the same, is tried again under the same name.
    pub seed: u64,
}

/// A controller as *observe → plan → act → status*.
///
/// It does not learn why it runs, and reads only caches: the same world gives the same plan.
pub trait Reconciler: Send + Sync + 'static {
    /// Everything that a decision depends on.
    type World: Send + Sync;
    /// One idempotent write, as data.
    type Action: Debug + Send + Sync;
    /// The status that is written.
    type Status: Send + Sync;

    /// Observe: returns a snapshot of the caches; `None` if the object is gone. Has no side effects.
    fn observe(&self, key: &Key, inputs: Inputs) -> Option<Self::World>;

    /// Returns the metadata of the reconciled object, as it was observed.
    fn meta(world: &Self::World) -> &Meta;

    /// Plan: total and deterministic.
    fn plan(world: &Self::World) -> Plan<Self::Action>;

    /// Returns the other object that an action writes, so that the decision log finds the reconcile by that one, too.
    fn touches(_: &Self::World, _: &Self::Action) -> Option<ObjectRef> {
        None
    }

    /// Act: executes an action through this client, which fences it. [`Receipt::none`] if nothing had to be written.
    fn act(
        &self,
        gateway: &Client,
        world: &Self::World,
        action: &Self::Action,
    ) -> impl Future<Output = Result<Receipt, ApiError>> + Send;

    /// Records Events about an action that was executed.
    fn record(&self, _: &Self::World, _: &Self::Action, _: &Result<Receipt, ApiError>) {}

    /// Status: returns the status that the object should have; `None` if it has it. Pure, as `plan` is.
    fn status(world: &Self::World, outcome: &Outcome<Self::Action>) -> Option<Self::Status>;

    /// Writes the status.
    fn update_status(
        &self,
        gateway: &Client,
        world: &Self::World,
        status: Self::Status,
    ) -> impl Future<Output = Result<Receipt, ApiError>> + Send;
}
