//! The controller: its informers, and its implementation of [`Reconciler`].

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use setpoint_controller::runtime::Settings;
use setpoint_controller::{
    Client, Delta, Hosted, Inputs, ObjectRef, Plan, QueueHandle, Reader, Receipt, Reconciler,
    Recorder, Replica, Whole,
};
use setpoint_model::endpointslice::SERVICE_NAME;
use setpoint_model::{Key, Meta, Selector};
use setpoint_proto::core::{Endpoints, Service};
use setpoint_proto::discovery::EndpointSlice;
use setpoint_proto::{ApiError, Resource as _};

use crate::{Action, Addresses, NodeView, PodView, World, act, plan, report_forever};

/// The reconciler of Services.
pub struct Services {
    services: Reader<Whole<Service>>,
    pods: Reader<PodView>,
    nodes: Reader<NodeView>,
    slices: Reader<Whole<EndpointSlice>>,
    endpoints: Reader<Whole<Endpoints>>,
    events: Recorder,
    /// The uids of the Services with an Event about addresses to which they may not forward: one Event for each.
    reported: Mutex<HashMap<Key, String>>,
}

/// The name of the controller.
const NAME: &str = "endpointslice-controller";

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted<Addresses> = Hosted {
    name: NAME,
    resource: Service::RESOURCE,
    run: |replica, settings, own| Box::pin(run(replica, settings, own)),
};

async fn run(replica: Replica, settings: Settings, addresses: Addresses) -> anyhow::Result<()> {
    if let Some(range) = addresses.loopback().map_err(anyhow::Error::msg)? {
        setpoint_model::ip::allow_loopback_endpoints(range);
    }
    let reconciler = Services::new(
        replica.reader(),
        replica.reader(),
        replica.reader(),
        replica.reader(),
        replica.reader(),
        replica.events.clone(),
    );
    let leading = QueueHandle::default();
    let (of_node, on_node) = (replica.reader(), replica.reader());
    let (pods, nodes) = (replica.reader(), replica.reader());
    let slices = replica.informer::<Whole<EndpointSlice>>();
    let endpoints = replica.informer::<Whole<Endpoints>>();
    let controller = replica
        .controller(reconciler)
        .for_(replica.informer::<Whole<Service>>())
        .watches(replica.informer(), replica.with_reader(selecting))
        .depends_on(replica.informer(), move |delta| {
            on(&of_node, &on_node, delta)
        })
        .watches(slices, |slice| service_of(&slice.meta))
        .watches(endpoints, |endpoints| Some(endpoints.meta.key.clone()))
        .queue(&leading);
    let (policies, client) = (replica.informer(), replica.client.clone());
    let instance = replica.host.instance().to_owned();
    let places = (pods, nodes);
    let report = report_forever(policies, places, &leading, &client, NAME, &instance);
    tokio::select! {
        ended = replica.run(controller, settings) => ended,
        () = report => Ok(()),
    }
}

/// Returns the Services that select a Pod.
fn selecting(all: &Reader<Whole<Service>>, pod: &PodView) -> Vec<Key> {
    let services = all.in_namespace(&pod.meta.key.namespace).into_iter();
    let selecting = services.filter(|service| selects(&service.object, pod));
    selecting.map(|service| service.meta.key.clone()).collect()
}

/// Returns the Services with Pods on a node whose zone has changed.
fn on(all: &Reader<Whole<Service>>, pods: &Reader<PodView>, delta: &Delta<NodeView>) -> Vec<Key> {
    let zone = |node: &Option<Arc<NodeView>>| node.as_ref().and_then(|node| node.zone.clone());
    let Some(node) = delta.new.as_ref().or(delta.old.as_ref()) else {
        return Vec::new();
    };
    if zone(&delta.old) == zone(&delta.new) {
        return Vec::new();
    }
    let mut pods = pods.list();
    pods.retain(|pod| pod.node.as_deref() == Some(&node.meta.key.name));
    let mut services: Vec<_> = pods.iter().flat_map(|pod| selecting(all, pod)).collect();
    services.sort_unstable();
    services.dedup();
    services
}

/// Returns whether a Service selects a Pod. One without a selector selects none.
fn selects(service: &Service, pod: &PodView) -> bool {
    let selector = &service.spec.selector;
    !selector.is_empty() && Selector::from_labels(selector).matches(&pod.labels)
}

/// Returns the Service that a slice names.
fn service_of(slice: &Meta) -> Option<Key> {
    let name = slice.labels.get(SERVICE_NAME)?;
    Some(Key::new(&slice.key.namespace, name))
}

impl Services {
    /// Returns a reconciler over these caches.
    pub fn new(
        services: Reader<Whole<Service>>,
        pods: Reader<PodView>,
        nodes: Reader<NodeView>,
        slices: Reader<Whole<EndpointSlice>>,
        endpoints: Reader<Whole<Endpoints>>,
        events: Recorder,
    ) -> Self {
        Self {
            services,
            pods,
            nodes,
            slices,
            endpoints,
            events,
            reported: Mutex::default(),
        }
    }

    fn is_reported(&self, service: &Meta) -> bool {
        self.reported.lock().get(&service.key) == Some(&service.uid)
    }

    /// Keeps that a Service has its Event. Those of Services that are gone are forgotten once they are the most.
    fn keep_reported(&self, service: &Meta) {
        let mut reported = self.reported.lock();
        if reported.len() > 2 * self.services.len() {
            reported.retain(|key, _| self.services.get(key).is_some());
        }
        reported.insert(service.key.clone(), service.uid.clone());
    }
}

impl Reconciler for Services {
    type Object = Service;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        let service = self.services.get(key)?;
        let mut pods = self.pods.in_namespace(&key.namespace);
        pods.retain(|pod| selects(&service.object, pod));
        let mut slices = self.slices.in_namespace(&key.namespace);
        slices.retain(|slice| service_of(&slice.meta).as_ref() == Some(key));
        let zones = pods.iter().filter_map(|pod| {
            let node = pod.node.as_deref()?;
            let zone = self.nodes.get(&Key::new("", node))?.zone.clone()?;
            Some((node.to_owned(), zone.into()))
        });
        Some(World {
            zones: zones.collect(),
            is_reported: self.is_reported(&service.meta),
            service,
            pods,
            slices,
            endpoints: self.endpoints.get(key),
            seed: inputs.seed,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.service.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(world: &World, action: &Action) -> Option<ObjectRef> {
        let (resource, name) = match action {
            Action::Create(slice) | Action::Update(slice) => {
                (EndpointSlice::RESOURCE, &slice.metadata.name)
            }
            Action::Delete(slice) => (EndpointSlice::RESOURCE, &slice.key.name),
            Action::CreateEndpoints(endpoints) | Action::UpdateEndpoints(endpoints) => {
                (Endpoints::RESOURCE, &endpoints.metadata.name)
            }
            Action::Report(_) => return None,
        };
        let namespace = &world.service.meta.key.namespace;
        Some(Key::new(namespace, name).in_resource(resource))
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, &self.events, &world.service, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        if let Action::Report(_) = action {
            self.keep_reported(&world.service.meta);
        }
        act::record(&self.events, &world.service, action, result);
    }
}
