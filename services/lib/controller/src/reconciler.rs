//! The steps of a controller: pure functions, and two with I/O.

use std::fmt::Debug;
use std::future::{Future, ready};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use setpoint_model::{Key, Meta};
use setpoint_proto::{ApiError, Resource};

use crate::decision_log::Note;
use crate::{Cascade, Client, ObjectRef, Outcome, Plan, Receipt, Step};

/// The inputs of an observation that are in no cache.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    /// The time.
    pub now: Timestamp,
    /// The time of the monotonic clock.
    pub instant: Instant,
    /// A random number, for names. It is repeated until the key is reconciled without a failure: so a create that
    /// failed, and was perhaps committed all the same, is tried again under the same name.
    pub seed: u64,
}

/// The status of the objects that a reconciler reconciles.
pub type StatusOf<R> = <<R as Reconciler>::Object as Resource>::Status;

/// A controller as *observe → plan → act → status*.
///
/// It does not get the reason of a reconcile, and reads only caches: the same world gives the same plan.
///
/// ```
/// use std::sync::Arc;
///
/// use setpoint_controller::{Client, Inputs, Plan, Reader, Receipt, Reconciler, View, Whole};
/// use setpoint_model::{Key, Meta};
/// use setpoint_proto::ApiError;
/// use setpoint_proto::core::ConfigMap;
///
/// /// Adds the label `example.com/seen` to each ConfigMap.
/// struct Labels {
///     configs: Reader<Whole<ConfigMap>>,
/// }
///
/// #[derive(Debug)]
/// struct AddLabel;
///
/// impl Reconciler for Labels {
///     type Object = ConfigMap;
///     type World = Arc<Whole<ConfigMap>>;
///     type Action = AddLabel;
///
///     fn observe(&self, key: &Key, _: Inputs) -> Option<Self::World> {
///         self.configs.get(key)
///     }
///
///     fn meta(config: &Self::World) -> &Meta {
///         &config.meta
///     }
///
///     fn plan(config: &Self::World) -> Plan<AddLabel> {
///         let mut plan = Plan::default();
///         if !config.meta.labels.contains_key("example.com/seen") {
///             plan.step(AddLabel, "it has no label");
///         }
///         plan
///     }
///
///     async fn act(
///         &self,
///         client: &Client,
///         config: &Self::World,
///         _: &AddLabel,
///     ) -> Result<Receipt, ApiError> {
///         let mut labelled = config.object.clone();
///         labelled.metadata.labels.insert("example.com/seen".into(), "true".into());
///         Ok(client.update(&labelled).await?.receipt())
///     }
/// }
///
/// let mut config = ConfigMap::default();
/// config.metadata.name = "greeting".into();
/// let world = Arc::new(Whole::of(config));
/// assert_eq!(Labels::plan(&world).steps.len(), 1);
/// ```
pub trait Reconciler: Send + Sync + 'static {
    /// The kind of the reconciled objects; `PartialObjectMetadata` for objects of any kind, whose names [`Self::kind`]
    /// returns.
    type Object: Resource;
    /// Everything that a decision depends on.
    type World: Send + Sync;
    /// One idempotent write, as data.
    type Action: Debug + Send + Sync;

    /// The maximum number of plans that a reconcile executes, each of a new observation, until one is empty or fails.
    /// It also ends after a plan whose writes the caches have not reached; their arrival wakes the key.
    const PASSES: usize = 1;
    /// The maximum number of concurrent steps; 1 keeps their order. More would wait in the gateway.
    const CONCURRENCY: usize = 64;
    /// The name of a reconcile's span if most of its plans have a single step, which has no span of its own then.
    const SPAN: Option<&'static str> = None;

    /// Called when a term begins, with synced caches and before the first observation; by a controller that works
    /// [before](crate::Controller::eager) they are, once they are.
    fn begin(&self) {}

    /// Fetch: reads what no informer holds, such as metrics, and keeps it for [`Self::observe`]. Called before the
    /// first observation of each reconcile, never concurrently for one key.
    fn fetch(&self, _: &Client, _: &Key, _: Timestamp) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Observe: returns a snapshot of the caches; `None` if the object is gone. Has no side effects.
    fn observe(&self, key: &Key, inputs: Inputs) -> Option<Self::World>;

    /// Observes the keys of a batch in one snapshot, in their order. A decision that depends on those before it is part
    /// of its world; it is made by a pure function of the snapshot.
    fn observe_all(&self, batch: &[(Key, Inputs)]) -> Vec<Option<Self::World>> {
        let observed = batch.iter().map(|(key, inputs)| self.observe(key, *inputs));
        observed.collect()
    }

    /// Returns the metadata of the reconciled object, as it was observed.
    fn meta(world: &Self::World) -> &Meta;

    /// Returns resource and kind of the reconciled object, for a controller of objects of any kind.
    fn kind(_: &Self::World) -> Option<(&str, &str)> {
        None
    }

    /// Plan: total and deterministic.
    fn plan(world: &Self::World) -> Plan<Self::Action>;

    /// Adds a step to the record of the reconcile.
    fn describe(world: &Self::World, step: &Step<Self::Action>, note: &mut Note) {
        let touched = Self::touches(world, &step.action);
        note.step(&step.action, step.because, touched);
    }

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

    /// Called with the result of each action, for Events and metrics.
    fn record(&self, _: &Self::World, _: &Self::Action, _: &Result<Receipt, ApiError>) {}

    /// Status: returns the status that the object should have; `None` if it has it. Pure, as `plan` is.
    fn status(_: &Self::World, _: &Outcome<Self::Action>) -> Option<StatusOf<Self>> {
        None
    }

    /// Writes the status to the version that was observed, and returns its receipt.
    fn update_status(
        &self,
        gateway: &Client,
        world: &Self::World,
        status: StatusOf<Self>,
    ) -> impl Future<Output = Result<Receipt, ApiError>> + Send {
        gateway.update_status_of::<Self::Object>(Self::meta(world), status)
    }

    /// Returns whether the object has reached its target state. Until it has, adds of its key without a cause are
    /// attributed to the causes of the reconcile.
    fn converged(_: &Self::World) -> bool {
        true
    }

    /// Returns the delay after this error; `None` for a delay that grows with each failure.
    fn retry_after(_: &ApiError) -> Option<Duration> {
        None
    }

    /// Sets attributes of the reconcile's span.
    fn trace(_: &Self::World, _: &Outcome<Self::Action>, _: &Cascade) {}
}
