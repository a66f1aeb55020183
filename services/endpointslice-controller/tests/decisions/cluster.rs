//! The objects of one Service, and the writes of the controller.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use setpoint_controller::{View as _, Whole};
use setpoint_endpointslice_controller::{Action, PodView, World, Zones, plan};
use setpoint_objects::Objects;
use setpoint_proto::core::{Endpoints, Pod, Service};
use setpoint_proto::discovery::EndpointSlice;

/// A Service with its Pods, and the objects that the controller writes.
#[derive(Debug)]
pub struct Cluster {
    pub objects: Objects,
    pub service: Service,
    pub pods: BTreeMap<String, Pod>,
    pub zones: Zones,
    pub reports: Vec<String>,
    seed: u64,
}

pub fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("it is an object of the kind")
}

pub fn service(spec: Value) -> Service {
    let metadata =
        json!({"namespace": "shop", "name": "web", "uid": "s", "labels": {"tier": "front"}});
    read(json!({"metadata": metadata, "spec": spec}))
}

/// Returns a Service with a selector and a port with a name.
pub fn selecting() -> Service {
    let port = json!({"name": "http", "protocol": "TCP", "port": 80, "targetPort": "web"});
    service(
        json!({"clusterIP": "10.96.0.9", "ipFamilies": ["IPv4"], "selector": {"app": "web"}, "ports": [port]}),
    )
}

pub fn pod(name: &str, ip: &str, ready: bool) -> Pod {
    let ready = if ready { "True" } else { "False" };
    let port = json!({"name": "web", "protocol": "TCP", "containerPort": 8080});
    read(json!({
        "metadata": {"namespace": "shop", "name": name, "uid": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "node-0", "containers": [{"name": "main", "ports": [port]}]},
        "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }))
}

impl Cluster {
    pub fn of(service: Service, pods: impl IntoIterator<Item = Pod>) -> Self {
        let pods = pods.into_iter().map(|pod| (pod.metadata.name.clone(), pod));
        Self {
            objects: Objects::new("shop", Timestamp::UNIX_EPOCH),
            service,
            pods: pods.collect(),
            zones: Zones::new(),
            reports: Vec::new(),
            seed: 0,
        }
    }

    pub fn world(&self) -> World {
        World {
            zones: self.zones.clone(),
            service: Arc::new(Whole::of(self.service.clone())),
            pods: self
                .pods
                .values()
                .cloned()
                .map(PodView::of)
                .map(Arc::new)
                .collect(),
            slices: self.objects.newest().views(),
            endpoints: self.objects.get("web").map(Whole::of).map(Arc::new),
            is_reported: !self.reports.is_empty(),
            seed: self.seed << 32,
        }
    }

    pub fn actions(&mut self) -> Vec<Action> {
        self.seed += 1;
        plan(&self.world())
            .steps
            .into_iter()
            .map(|step| step.action)
            .collect()
    }

    pub fn apply(&mut self, action: Action) {
        let (objects, service) = (&mut self.objects, Whole::of(self.service.clone()));
        let applied = match action {
            Action::Create(slice) => objects.create_or_take(&service.meta, *slice),
            Action::Update(slice) => objects.update(*slice),
            Action::Delete(slice) => objects.delete_unchanged::<EndpointSlice>(&slice),
            Action::CreateEndpoints(new) => objects.create(*new).map(drop),
            Action::UpdateEndpoints(new) => objects.update(*new),
            Action::Report(problem) => {
                self.reports.push(problem);
                Ok(())
            }
        };
        applied.expect("what is planned is accepted");
    }

    /// Executes plans until one is empty; returns the number of writes.
    pub fn settle(&mut self) -> usize {
        let actions = self.actions();
        let writes = actions.len();
        actions.into_iter().for_each(|action| self.apply(action));
        let more = self.actions();
        assert!(more.is_empty(), "a second plan has work left: {more:?}");
        writes
    }

    /// Returns the slices, by name.
    pub fn slices(&self) -> Vec<Arc<EndpointSlice>> {
        self.objects.list()
    }

    /// Returns the first slice.
    pub fn slice(&self) -> EndpointSlice {
        EndpointSlice::clone(&self.slices()[0])
    }

    pub fn endpoints(&self) -> Endpoints {
        self.objects.get("web").expect("they exist")
    }

    /// Returns the addresses of the slices with their conditions `ready`, `serving` and `terminating`.
    pub fn addresses(&self) -> Vec<(String, [Option<bool>; 3])> {
        let slices = self.slices();
        let endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
        let found = endpoints.map(|one| {
            let are = &one.conditions;
            (
                one.addresses[0].clone(),
                [are.ready, are.serving, are.terminating],
            )
        });
        found.collect()
    }
}
