//! Services and nodes of tests.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use setpoint_controller::{Plan, View as _, Whole};
use setpoint_proto::core::{Node, Service};
use setpoint_service_lb_controller::{
    Action, Claim, FINALIZER, Ingress, NodeView, World, is_ours, plan,
};

/// A cluster.
#[derive(Clone, Debug, Default)]
pub struct Scene {
    pub services: Vec<Value>,
    pub nodes: Vec<Value>,
    /// The names of the nodes with ready endpoints of every Service.
    pub ready: BTreeSet<Box<str>>,
    /// The addresses of the settings.
    pub fixed: BTreeSet<IpAddr>,
}

/// Returns the Service `default/<name>`, of the type LoadBalancer, which was made at this second.
pub fn balanced(name: &str, second: u8, ports: &[u16]) -> Value {
    let port = |port: &u16| json!({"name": format!("p{port}"), "port": port, "protocol": "TCP"});
    json!({
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": name,
            "resourceVersion": "1",
            "creationTimestamp": format!("2026-11-29T00:00:{second:02}Z"),
        },
        "spec": {"type": "LoadBalancer", "ports": ports.iter().map(port).collect::<Vec<_>>()},
    })
}

/// Returns the ready node `node-<number>` at 10.245.0.<number>.
pub fn node(number: u8) -> Value {
    let address = format!("10.245.0.{number}");
    json!({
        "metadata": {"name": format!("node-{number}")},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": address}],
        },
    })
}

impl Scene {
    pub fn of(services: &[Value], nodes: &[Value]) -> Self {
        Self {
            services: services.to_vec(),
            nodes: nodes.to_vec(),
            ..Self::default()
        }
    }

    fn service(value: &Value) -> Whole<Service> {
        Whole::of(serde_json::from_value(value.clone()).unwrap())
    }

    /// Returns the world of a Service.
    pub fn world(&self, number: usize) -> World {
        let node = |node: &Value| {
            let node: Node = serde_json::from_value(node.clone()).unwrap();
            Arc::new(NodeView::of(node))
        };
        let nodes: Vec<_> = self.nodes.iter().map(node).collect();
        let services = self.services.iter().map(Self::service);
        let ours = services.filter(|one| is_ours(&one.object) && !one.meta.deleting);
        World {
            claims: ours
                .map(|service| Claim::of(&service, &nodes, &self.ready, &self.fixed))
                .collect(),
            service: Arc::new(Self::service(&self.services[number])),
            reported: None,
        }
    }

    pub fn plan(&self, number: usize) -> Plan<Action> {
        plan(&self.world(number))
    }

    /// Executes an action.
    pub fn act(&mut self, number: usize, action: &Action) {
        let service = &mut self.services[number];
        match action {
            Action::Protect => service["metadata"]["finalizers"] = json!([FINALIZER]),
            Action::Release => service["metadata"]["finalizers"] = json!([]),
            Action::SetIngress(Ingress(ingress)) => {
                service["status"] = json!({"loadBalancer": {"ingress": ingress}});
            }
            Action::ClearIngress => service["status"] = json!({}),
            Action::ReportTaken(_) | Action::ReportNoNode => {}
        }
    }

    /// Executes plans until none writes anything.
    pub fn converge(&mut self) {
        for _ in 0..4 {
            for number in 0..self.services.len() {
                let steps = self.plan(number).steps;
                steps.iter().for_each(|step| self.act(number, &step.action));
            }
        }
        for number in 0..self.services.len() {
            let steps = self.plan(number).steps;
            let writes = steps.iter().filter(|step| !is_report(&step.action));
            assert_eq!(writes.count(), 0, "{steps:?}");
        }
    }

    /// Returns the addresses of a Service.
    pub fn addresses(&self, number: usize) -> Vec<String> {
        let service = Self::service(&self.services[number]).object;
        let ingress = service.status.load_balancer.ingress.into_iter();
        ingress.map(|one| one.ip).collect()
    }

    pub fn finalizers(&self, number: usize) -> usize {
        let finalizers = &self.services[number]["metadata"]["finalizers"];
        finalizers.as_array().map_or(0, Vec::len)
    }
}

pub fn is_report(action: &Action) -> bool {
    matches!(action, Action::ReportTaken(_) | Action::ReportNoNode)
}
