//! The network of a cluster for machines that join: the ConfigMap `kube-system/setpoint-network`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use setpoint_model::Cidr;
use setpoint_model::bootstrap_token::JOINING_AGENTS;
use setpoint_model::replicas::BESIDE_NODE_AGENT;
use setpoint_model::users::{NODES, of_service};

use super::network::Network;

/// The namespace of the ConfigMap.
pub const NAMESPACE: &str = "kube-system";
/// The name of the ConfigMap.
pub const NAME: &str = "setpoint-network";
/// The port of the Service of the API.
const API_PORT: u16 = 443;
const RBAC: &str = "rbac.authorization.k8s.io";

/// The ranges and addresses of a cluster of several machines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterNetwork {
    /// The range of the addresses of all Pods.
    pub pod_range: Cidr,
    /// The range of the addresses of Services.
    pub service_range: Cidr,
    /// The address of the Service of the cluster's DNS.
    pub cluster_dns: Ipv4Addr,
    /// The address of the Service of the API.
    pub api: Ipv4Addr,
}

impl ClusterNetwork {
    /// Returns those of a cluster.
    ///
    /// # Errors
    /// If a range is none of IPv4.
    pub fn of(network: Network) -> anyhow::Result<Self> {
        let [(_, pod_range), (_, service_range)] = network.ranges()?;
        Ok(Self {
            pod_range,
            service_range,
            cluster_dns: network.dns_service(),
            api: network.api_service(),
        })
    }

    /// Returns what the data of the ConfigMap say.
    ///
    /// # Errors
    /// If a value is missing or malformed.
    pub fn parse(data: &BTreeMap<String, String>) -> anyhow::Result<Self> {
        let value = serde_json::to_value(data)?;
        serde_json::from_value(value).with_context(|| format!("{NAMESPACE}/{NAME} is damaged"))
    }

    /// Returns the ranges of the addresses of Pods and of Services.
    pub fn ranges(&self) -> [(&'static str, Cidr); 2] {
        [("Pods", self.pod_range), ("Services", self.service_range)]
    }

    /// Returns the host and port at which Pods reach the API.
    pub fn api_server(&self) -> String {
        format!("{}:{API_PORT}", self.api)
    }

    /// Returns the ConfigMap.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn config_map(&self) -> serde_json::Result<Value> {
        let data = serde_json::to_value(self)?;
        Ok(json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": own(), "data": data }))
    }

    /// Returns the role by which agents that join, and nodes, read it, and its binding.
    pub fn readers() -> [Value; 2] {
        let rule = json!({ "apiGroups": [""], "resources": ["configmaps"], "resourceNames": [NAME], "verbs": ["get"] });
        [
            json!({ "apiVersion": version(), "kind": "Role", "metadata": own(), "rules": [rule] }),
            json!({ "apiVersion": version(), "kind": "RoleBinding", "metadata": own(),
                "roleRef": role("Role", NAME), "subjects": [group(JOINING_AGENTS), group(NODES)] }),
        ]
    }

    /// Returns the bindings by which what runs beside the agent of a node reads what it needs, as a client by the
    /// certificate of the node.
    pub fn beside_node_agents() -> [Value; 2] {
        BESIDE_NODE_AGENT.map(|service| {
            json!({ "apiVersion": version(), "kind": "ClusterRoleBinding",
                "metadata": { "name": format!("{NAME}-{service}") },
                "roleRef": role("ClusterRole", &of_service(service)), "subjects": [group(NODES)] })
        })
    }
}

fn own() -> Value {
    json!({ "namespace": NAMESPACE, "name": NAME })
}

fn version() -> String {
    format!("{RBAC}/v1")
}

fn group(name: &str) -> Value {
    json!({ "apiGroup": RBAC, "kind": "Group", "name": name })
}

fn role(kind: &str, name: &str) -> Value {
    json!({ "apiGroup": RBAC, "kind": kind, "name": name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_read_what_was_published() {
        let network = Network::default().at(Ipv4Addr::new(10, 0, 0, 1));
        let published = ClusterNetwork::of(network).unwrap();
        let map = published.config_map().unwrap();
        let data = serde_json::from_value(map["data"].clone()).unwrap();
        assert_eq!(ClusterNetwork::parse(&data).unwrap(), published);
        assert_eq!(published.api_server(), "10.96.0.1:443");
        let damaged = ClusterNetwork::parse(&BTreeMap::new()).unwrap_err();
        assert_eq!(
            damaged.to_string(),
            "kube-system/setpoint-network is damaged"
        );
    }
}
