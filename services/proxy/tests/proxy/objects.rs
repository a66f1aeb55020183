//! Services and EndpointSlices of tests.

use std::sync::Arc;

use serde_json::{Value, json};
use setpoint_controller::View as _;
use setpoint_model::Key;
use setpoint_proto::core::Service;
use setpoint_proto::discovery::EndpointSlice;
use setpoint_proxy::{Changes, Place, ServicePlan, ServiceView, SliceView, World, plan};

/// A Service with its slices.
#[derive(Clone, Debug)]
pub struct Scene {
    pub service: Value,
    pub slices: Vec<Value>,
    pub external_ips: bool,
}

impl Scene {
    /// Returns the Service `default/<name>` with the port `http`, 80 of TCP.
    pub fn new(name: &str, cluster_ip: &str) -> Self {
        let port = json!({"name": "http", "protocol": "TCP", "port": 80});
        Self {
            service: json!({
                "metadata": {"namespace": "default", "name": name},
                "spec": {"type": "ClusterIP", "clusterIP": cluster_ip, "ports": [port]},
                "status": {},
            }),
            slices: Vec::new(),
            external_ips: false,
        }
    }

    /// Sets fields of the spec.
    pub fn spec(mut self, fields: Value) -> Self {
        for (name, value) in fields.as_object().unwrap() {
            self.service["spec"][name] = value.clone();
        }
        self
    }

    /// Sets the addresses of the load balancer.
    pub fn balanced_at(mut self, ip: &str) -> Self {
        self.service["spec"]["type"] = json!("LoadBalancer");
        self.service["status"] = json!({"loadBalancer": {"ingress": [{"ip": ip}]}});
        self
    }

    /// Adds a slice with the port `http`.
    pub fn slice(self, port: u16, endpoints: &[Value]) -> Self {
        let http = json!({"name": "http", "protocol": "TCP", "port": port});
        self.slice_of(&[http], endpoints)
    }

    pub fn slice_of(mut self, ports: &[Value], endpoints: &[Value]) -> Self {
        let name = &self.service["metadata"]["name"];
        self.slices.push(json!({
            "metadata": {
                "namespace": "default",
                "name": format!("slice-{}", self.slices.len()),
                "labels": {"kubernetes.io/service-name": name},
            },
            "addressType": "IPv4",
            "ports": ports,
            "endpoints": endpoints,
        }));
        self
    }

    /// Returns the world of a proxy for the nodes of `place`.
    pub fn world(&self, place: &Arc<Place>) -> World {
        let service: Service = serde_json::from_value(self.service.clone()).unwrap();
        let slice = |slice: &Value| {
            let slice: EndpointSlice = serde_json::from_value(slice.clone()).unwrap();
            Arc::new(SliceView::of(slice))
        };
        World {
            service: Arc::new(ServiceView::of(service)),
            slices: self.slices.iter().map(slice).collect(),
            place: Arc::clone(place),
            external_ips: self.external_ips,
        }
    }

    pub fn plan(&self, place: &Arc<Place>) -> ServicePlan {
        plan(&self.world(place))
    }

    /// Returns the change that programs it.
    pub fn changes(&self, place: &Arc<Place>) -> Changes {
        let world = self.world(place);
        let key = world.service.meta.key.clone();
        Changes::from([(key, Some(Arc::new(plan(&world))))])
    }

    /// Returns the change that removes it.
    pub fn removal(&self) -> Changes {
        let name = self.service["metadata"]["name"].as_str().unwrap();
        Changes::from([(Key::new("default", name), None)])
    }
}

/// Returns a ready endpoint on `node`.
pub fn ready(ip: &str, node: &str) -> Value {
    endpoint(ip, node, [true, true, false])
}

/// Returns an endpoint whose conditions are ready, serving and terminating.
pub fn endpoint(ip: &str, node: &str, [ready, serving, terminating]: [bool; 3]) -> Value {
    json!({
        "addresses": [ip],
        "nodeName": node,
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
    })
}

/// Returns the place of the node `here`, at 192.0.2.1.
pub fn here() -> Arc<Place> {
    Arc::new(Place {
        nodes: ["here".into()].into(),
        zone: "a".into(),
        addresses: ["192.0.2.1".parse().unwrap()].into(),
        ..Place::default()
    })
}
