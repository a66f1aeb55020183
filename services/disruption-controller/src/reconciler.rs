//! The controller: its informers, and its implementation of [`Reconciler`].

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::runtime::Settings;
use setpoint_controller::{
    Client, Hosted, Inputs, Outcome, Plan, Reader, Receipt, Reconciler, Recorder, Replica, events,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::policy::{PodDisruptionBudget, PodDisruptionBudgetStatus};
use setpoint_proto::{ApiError, Resource as _};
use setpoint_workload::{DefinitionView, PodView};

use crate::scale::scales;
use crate::{BudgetView, Scales, World, plan, status, warning};

/// The PodDisruptionBudget reconciler.
pub struct Budgets {
    budgets: Reader<BudgetView>,
    pods: Reader<PodView>,
    definitions: Reader<DefinitionView>,
    /// The scales that were read last for each budget that needs them.
    scales: Mutex<HashMap<Key, Result<Scales, String>>>,
    events: Recorder,
}

/// The PodDisruptionBudget controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "disruption-controller",
    resource: PodDisruptionBudget::RESOURCE,
    run: |replica, settings, ()| Box::pin(run(replica, settings)),
};

async fn run(replica: Replica, settings: Settings) -> anyhow::Result<()> {
    let reconciler = Budgets::new(
        replica.reader(),
        replica.reader(),
        replica.reader(),
        replica.events.clone(),
    );
    let controller = replica
        .controller(reconciler)
        .for_(replica.informer::<BudgetView>())
        .watches(replica.informer(), replica.with_reader(selecting))
        .watches(replica.informer::<DefinitionView>(), |_| None);
    replica.run(controller, settings).await
}

/// Returns the budgets that select a Pod.
fn selecting(all: &Reader<BudgetView>, pod: &PodView) -> Vec<Key> {
    let budgets = all.in_namespace(&pod.meta.key.namespace).into_iter();
    let selecting = budgets.filter(|budget| budget.selector.matches(&pod.labels));
    selecting.map(|budget| budget.meta.key.clone()).collect()
}

impl Budgets {
    /// Returns a reconciler over these caches.
    pub fn new(
        budgets: Reader<BudgetView>,
        pods: Reader<PodView>,
        definitions: Reader<DefinitionView>,
        events: Recorder,
    ) -> Self {
        Self {
            budgets,
            pods,
            definitions,
            scales: Mutex::default(),
            events,
        }
    }

    /// Records the Events that belong to a new status.
    fn report(&self, world: &World) {
        let about = events::reference::<PodDisruptionBudget>(&world.budget.meta);
        if world.pods.is_empty() {
            self.events
                .normal(&about, "NoPods", "No matching pods found".to_owned());
        }
        if let Some((reason, message)) = warning(world) {
            self.events.warning(&about, reason, message);
        }
    }

    fn selected(&self, budget: &BudgetView) -> Vec<Arc<PodView>> {
        let mut pods = self.pods.in_namespace(&budget.meta.key.namespace);
        pods.retain(|pod| budget.selector.matches(&pod.labels));
        pods
    }
}

impl Reconciler for Budgets {
    type Object = PodDisruptionBudget;
    type World = World;
    type Action = Infallible;

    fn begin(&self) {
        self.scales.lock().clear();
    }

    async fn fetch(&self, client: &Client, key: &Key, _: Timestamp) {
        let budget = self.budgets.get(key);
        let Some(budget) = budget.filter(|budget| budget.rule.needs_scales()) else {
            self.scales.lock().remove(key);
            return;
        };
        let scales = scales(client, &self.definitions, &self.selected(&budget)).await;
        self.scales.lock().insert(key.clone(), scales);
    }

    fn observe(&self, key: &Key, Inputs { now, .. }: Inputs) -> Option<World> {
        let budget = self.budgets.get(key)?;
        let scales = self.scales.lock().get(key).cloned();
        Some(World {
            pods: self.selected(&budget),
            scales: scales.unwrap_or_else(|| Ok(Scales::default())),
            budget,
            now,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.budget.meta
    }

    fn plan(world: &World) -> Plan<Infallible> {
        plan(world)
    }

    async fn act(&self, _: &Client, _: &World, action: &Infallible) -> Result<Receipt, ApiError> {
        match *action {}
    }

    fn status(world: &World, _: &Outcome<Infallible>) -> Option<PodDisruptionBudgetStatus> {
        status(world)
    }

    async fn update_status(
        &self,
        client: &Client,
        world: &World,
        status: PodDisruptionBudgetStatus,
    ) -> Result<Receipt, ApiError> {
        let meta = &world.budget.meta;
        let written = client.update_status_of::<PodDisruptionBudget>(meta, status);
        let receipt = written.await?;
        self.report(world);
        Ok(receipt)
    }
}
