//! The controller: its informers, its clock, and its implementation of [`Reconciler`].

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::{
    Client, Delta, Hosted, Inputs, ObjectRef, Outcome, Plan, QueueHandle, Reader, Receipt,
    Reconciler, Recorder, Replica, runtime,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::autoscaling_v2::{HorizontalPodAutoscaler, HorizontalPodAutoscalerStatus};
use setpoint_proto::{ApiError, Resource as _};
use setpoint_workload::DefinitionView;
use tokio::time::{MissedTickBehavior, interval};

use crate::act::is_overtaken;
use crate::fetch::Memory;
use crate::{
    Action, AutoscalerView, Autoscaling, GatewayMetrics, PodView, ResourceMetrics, World, act,
    plan, status,
};

/// The delay after a change that the gateway refused: as upstream, the next sync period.
const RETRY: Duration = Duration::from_secs(15);

/// The HorizontalPodAutoscaler reconciler.
pub struct Autoscalers {
    pub(crate) autoscalers: Reader<AutoscalerView>,
    pub(crate) pods: Reader<PodView>,
    pub(crate) definitions: Reader<DefinitionView>,
    pub(crate) metrics: Box<dyn ResourceMetrics>,
    pub(crate) settings: Arc<Autoscaling>,
    pub(crate) events: Recorder,
    pub(crate) memory: Memory,
}

impl Autoscalers {
    /// Returns a reconciler that reads the metrics of the gateway.
    pub fn new(
        autoscalers: Reader<AutoscalerView>,
        pods: Reader<PodView>,
        definitions: Reader<DefinitionView>,
        settings: Autoscaling,
        events: Recorder,
    ) -> Self {
        Self {
            autoscalers,
            pods,
            definitions,
            metrics: Box::new(GatewayMetrics),
            settings: Arc::new(settings),
            events,
            memory: Memory::default(),
        }
    }

    /// Sets the source of the usage of resources.
    #[must_use]
    pub fn metrics(mut self, metrics: impl ResourceMetrics) -> Self {
        self.metrics = Box::new(metrics);
        self
    }
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted<Autoscaling> = Hosted {
    name: "horizontalpodautoscaler-controller",
    resource: HorizontalPodAutoscaler::RESOURCE,
    run: |replica, settings, own| Box::pin(run(replica, settings, own)),
};

async fn run(
    replica: Replica,
    settings: runtime::Settings,
    autoscaling: Autoscaling,
) -> anyhow::Result<()> {
    let (all, period, queue) = (
        replica.reader(),
        autoscaling.sync_period,
        QueueHandle::default(),
    );
    let reconciler = Autoscalers::new(
        replica.reader(),
        replica.reader(),
        replica.reader(),
        autoscaling,
        replica.events.clone(),
    );
    let controller = replica
        .controller(reconciler)
        .for_those(replica.informer(), |_| true, spec_changed)
        .watches(replica.informer::<PodView>(), |_| None)
        .watches(replica.informer::<DefinitionView>(), |_| None)
        .queue(&queue);
    tokio::select! {
        ended = replica.run(controller, settings) => ended,
        () = tick_forever(&all, &queue, period) => Ok(()),
    }
}

/// Returns whether an autoscaler has appeared, gone, or wants something else. Its own status is no reason to look
/// again.
fn spec_changed(delta: &Delta<AutoscalerView>) -> bool {
    match (&delta.old, &delta.new) {
        (Some(old), Some(new)) => old.spec != new.spec || old.meta.uid != new.meta.uid,
        _ => true,
    }
}

/// Adds every autoscaler once in a period, without a cause: each look is the root of a trace of its own.
async fn tick_forever(all: &Reader<AutoscalerView>, queue: &QueueHandle, period: Duration) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let all = all.list();
        let count = u32::try_from(all.len()).unwrap_or(u32::MAX);
        for (index, autoscaler) in (0..count).zip(all) {
            // Spread over the period, so that the gateway is not asked for all metrics at once.
            let delay = period.saturating_mul(index).checked_div(count);
            queue.add_after(autoscaler.meta.key.clone(), delay.unwrap_or_default());
        }
    }
}

impl Reconciler for Autoscalers {
    type Object = HorizontalPodAutoscaler;
    type World = Arc<World>;
    type Action = Action;

    fn begin(&self) {
        self.memory.clear();
    }

    async fn fetch(&self, client: &Client, key: &Key, now: Timestamp) {
        self.read(client, key, now).await;
    }

    fn observe(&self, key: &Key, _: Inputs) -> Option<Arc<World>> {
        self.memory.world(key)
    }

    fn meta(world: &Arc<World>) -> &Meta {
        &world.autoscaler.meta
    }

    fn plan(world: &Arc<World>) -> Plan<Action> {
        plan(world)
    }

    fn touches(world: &Arc<World>, _: &Action) -> Option<ObjectRef> {
        act::target(world)
    }

    async fn act(
        &self,
        client: &Client,
        world: &Arc<World>,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, world, action).await
    }

    fn record(&self, world: &Arc<World>, action: &Action, result: &Result<Receipt, ApiError>) {
        if result.is_ok() {
            self.memory.scaled(world, action);
        }
        act::record(&self.events, &world.autoscaler, action, result);
    }

    fn status(
        world: &Arc<World>,
        outcome: &Outcome<Action>,
    ) -> Option<HorizontalPodAutoscalerStatus> {
        status(world, outcome)
    }

    async fn update_status(
        &self,
        client: &Client,
        world: &Arc<World>,
        status: HorizontalPodAutoscalerStatus,
    ) -> Result<Receipt, ApiError> {
        let meta = &world.autoscaler.meta;
        let updated = client.update_status_of::<HorizontalPodAutoscaler>(meta, status);
        let updated = updated.await;
        if let Err(error) = &updated
            && !is_overtaken(error)
        {
            let warning = ("FailedUpdateStatus", error.to_string());
            act::warn(&self.events, &world.autoscaler, &[warning]);
        }
        updated
    }

    fn retry_after(error: &ApiError) -> Option<Duration> {
        (!is_overtaken(error)).then_some(RETRY)
    }
}
