//! The controller: its informers, and its implementation of [`Reconciler`].

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use setpoint_controller::runtime::Settings;
use setpoint_controller::{
    Client, Delta, Hosted, Inputs, Plan, Reader, Receipt, Reconciler, Recorder, Replica, Whole,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::Service;
use setpoint_proto::{ApiError, Resource as _};

use crate::plan::{self, NO_NODE};
use crate::{Action, Balancing, Claim, Ingress, NodeView, SliceView, World, act};

type ServiceView = Whole<Service>;

/// The reconciler of Services with load balancers.
pub struct Balancers {
    services: Reader<ServiceView>,
    nodes: Reader<NodeView>,
    slices: Reader<SliceView>,
    events: Recorder,
    settings: Balancing,
    /// The last problem of each Service that an Event was recorded of, with the uid of the Service.
    reported: Mutex<HashMap<Key, (String, String)>>,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted<Balancing> = Hosted {
    name: "service-lb-controller",
    resource: Service::RESOURCE,
    run: |replica, settings, own| Box::pin(run(replica, settings, own)),
};

async fn run(replica: Replica, settings: Settings, own: Balancing) -> anyhow::Result<()> {
    let enabled = own.enabled;
    let readers = (replica.reader(), replica.reader(), replica.reader());
    let events = replica.events.clone();
    let reconciler = Balancers::new(readers.0, readers.1, readers.2, events, own);
    let controller = replica
        .controller(reconciler)
        .for_those(
            replica.informer(),
            move |service| enabled && matters(service),
            |_| true,
        )
        .depends_on(replica.informer(), replica.with_reader(rivals))
        .depends_on(replica.informer(), replica.with_reader(on_nodes))
        .depends_on(replica.informer(), replica.with_reader(with_endpoints));
    replica.run(controller, settings).await
}

/// Returns whether a Service has a load balancer, or has had one.
fn matters(service: &ServiceView) -> bool {
    plan::is_ours(&service.object) || plan::is_protected(&service.object)
}

fn ours(services: &Reader<ServiceView>) -> Vec<Arc<ServiceView>> {
    let mut all = services.list();
    all.retain(|service| plan::is_ours(&service.object));
    all
}

/// Returns all other Services with load balancers if one of them gets or loses a port.
fn rivals(services: &Reader<ServiceView>, delta: &Delta<ServiceView>) -> Vec<Key> {
    let claimed = |service: &Option<Arc<ServiceView>>| {
        let service = service.as_ref()?;
        let object = &service.object;
        let holds = plan::is_ours(object) && !service.meta.deleting;
        holds.then(|| (object.spec.clone(), object.status.clone()))
    };
    match claimed(&delta.old) == claimed(&delta.new) {
        true => Vec::new(),
        false => keys(ours(services)),
    }
}

/// Returns all Services with load balancers if the addresses of a node have changed, or whether it accepts connections.
fn on_nodes(services: &Reader<ServiceView>, delta: &Delta<NodeView>) -> Vec<Key> {
    match NodeView::is_same(delta.old.as_deref(), delta.new.as_deref()) {
        true => Vec::new(),
        false => keys(ours(services)),
    }
}

/// Returns the Service of a slice if other nodes have ready endpoints now, and only those count.
fn with_endpoints(services: &Reader<ServiceView>, delta: &Delta<SliceView>) -> Vec<Key> {
    let nodes = |slice: &Option<Arc<SliceView>>| slice.as_ref().map(|slice| slice.nodes.clone());
    if nodes(&delta.old) == nodes(&delta.new) {
        return Vec::new();
    }
    let slices = delta.old.iter().chain(&delta.new);
    let service = slices.filter_map(|slice| services.get(slice.service.as_ref()?));
    let mut service: Vec<_> = service
        .filter(|service| plan::is_ours(&service.object) && is_local(service))
        .collect();
    service.dedup_by(|one, other| one.meta.key == other.meta.key);
    keys(service)
}

fn is_local(service: &ServiceView) -> bool {
    service.object.spec.external_traffic_policy == "Local"
}

fn keys(services: Vec<Arc<ServiceView>>) -> Vec<Key> {
    services
        .iter()
        .map(|service| service.meta.key.clone())
        .collect()
}

impl Balancers {
    /// Returns a reconciler over these caches.
    pub fn new(
        services: Reader<ServiceView>,
        nodes: Reader<NodeView>,
        slices: Reader<SliceView>,
        events: Recorder,
        settings: Balancing,
    ) -> Self {
        Self {
            services,
            nodes,
            slices,
            events,
            settings,
            reported: Mutex::default(),
        }
    }

    fn claims(&self) -> Vec<Claim> {
        let nodes = self.nodes.list();
        let mut services = ours(&self.services);
        services.retain(|service| !service.meta.deleting);
        let claim = |service: &Arc<ServiceView>| {
            let mut slices = match is_local(service) {
                true => self.slices.tagged(&service.meta.key.name),
                false => Vec::new(),
            };
            slices.retain(|slice| slice.service.as_ref() == Some(&service.meta.key));
            let ready = slices.iter().flat_map(|slice| &slice.nodes).cloned();
            Claim::of(service, &nodes, &ready.collect(), &self.settings.addresses)
        };
        services.iter().map(claim).collect()
    }

    fn reported(&self, service: &Meta) -> Option<String> {
        let reported = self.reported.lock();
        let (uid, problem) = reported.get(&service.key)?;
        (*uid == service.uid).then(|| problem.clone())
    }

    /// Keeps the problem that a Service has now. Those of Services that are gone are forgotten once they are the most.
    fn keep_reported(&self, service: &Meta, problem: Option<&str>) {
        let mut reported = self.reported.lock();
        if reported.len() > 2 * self.services.len() {
            reported.retain(|key, _| self.services.get(key).is_some());
        }
        match problem {
            Some(problem) => {
                let entry = (service.uid.clone(), problem.to_owned());
                reported.insert(service.key.clone(), entry);
            }
            None => _ = reported.remove(&service.key),
        }
    }
}

impl Reconciler for Balancers {
    type Object = Service;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, _: Inputs) -> Option<World> {
        let service = self.services.get(key)?;
        Some(World {
            claims: self.claims(),
            reported: self.reported(&service.meta),
            service,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.service.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan::plan(world)
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, &world.service, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        let meta = &world.service.meta;
        match action {
            Action::ReportTaken(problem) => self.keep_reported(meta, Some(problem)),
            Action::ReportNoNode => self.keep_reported(meta, Some(NO_NODE)),
            Action::SetIngress(Ingress(ingress)) if !ingress.is_empty() => {
                self.keep_reported(meta, None)
            }
            _ => {}
        }
        act::record(&self.events, &world.service, action, result);
    }
}
