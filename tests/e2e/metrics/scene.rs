//! A cluster with activity for every metric.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use setpoint_tests::{Address, Cluster, Kubectl, Size, eventually, http};
use tempfile::NamedTempFile;

use super::exposition::{self, Family};
use crate::web;

const SIZE: Size = Size {
    gateways: 2,
    replicas: 2,
    process_nodes: 2,
    simulated_nodes: 1,
};
/// All processes except the gateways: both controllers, the scheduler, the housekeeping, and an agent per node.
const REPLICAS: usize = 3 * SIZE.replicas + 1 + SIZE.process_nodes + SIZE.simulated_nodes;

/// The policy of the gateways, whose events go to their logs.
const AUDIT: &str =
    "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata, verbs: [patch]}]}";

/// A running cluster with some history.
pub struct Scene {
    pub cluster: Cluster,
    pub kubectl: Kubectl,
    _policy: NamedTempFile,
}

impl Scene {
    /// Starts two gateways; performs a rollout, a scale, a fenced write, and conflicting writes of two managers.
    pub fn start() -> Self {
        let policy = NamedTempFile::new().unwrap();
        fs::write(policy.path(), AUDIT).unwrap();
        let file = policy.path().to_str().unwrap();
        let flags = ["--audit-policy-file", file, "--audit-log-path", "-"];
        let cluster = Cluster::with_gateway_flags(SIZE, &flags);
        let kubectl = cluster.kubectl();
        web::apply(&kubectl);
        let scene = Self {
            cluster,
            kubectl,
            _policy: policy,
        };
        scene.scale();
        scene.send_fenced_write();
        scene
            .kubectl
            .ok("create configmap prize --from-literal=owner=nobody");
        scene.overwrite_each_other();
        scene
    }

    /// Causes work for every control loop.
    pub fn scale(&self) {
        let kubectl = &self.kubectl;
        for replicas in [5, 3] {
            kubectl.ok(&format!(
                "scale deployment/web-frontend -n production --replicas={replicas}"
            ));
            web::until_ready(kubectl, replicas);
        }
    }

    /// Sends a write under a term that is not the current one.
    pub fn send_fenced_write(&self) {
        let leader = self.cluster.leader("scheduler");
        let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"late"}}"#;
        let path = "/api/v1/namespaces/default/configmaps";
        let fence = [
            ("Content-Type", "application/json"),
            ("setpoint-fence", "setpoint-system/scheduler/4711"),
        ];
        let reply = http::send("POST", &self.gateways()[0], path, &fence, body).unwrap();
        assert_eq!(reply.status, 409, "{leader} leads: {}", reply.body);
    }

    /// Lets two managers overwrite each other's field.
    pub fn overwrite_each_other(&self) {
        for manager in ["alice", "bob"].iter().cycle().take(8) {
            let patch = format!(r#"{{"data":{{"owner":"{manager}"}}}}"#);
            self.kubectl.ok(&format!(
                "patch configmap prize --field-manager={manager} -p {patch}"
            ));
        }
    }

    /// Returns the directory of the administrator's certificate.
    pub fn administrator(&self) -> PathBuf {
        self.cluster.directory().join("pki/admin")
    }

    /// Returns the addresses of the gateways.
    pub fn gateways(&self) -> Vec<Address> {
        self.cluster.gateway_urls().each()
    }

    /// Returns the addresses of all replicas by service, once all are known.
    pub fn targets(&self) -> BTreeMap<String, Vec<Address>> {
        let mut targets = BTreeMap::from([("gateway".to_owned(), self.gateways())]);
        let leases = eventually("all replicas have registered their addresses", || {
            let leases = self.kubectl.json("get leases -n setpoint-replicas");
            let leases = leases["items"].as_array().cloned().unwrap_or_default();
            match leases.len() {
                REPLICAS => Ok(leases),
                count => Err(format!("{count} of {REPLICAS}: {leases:?}")),
            }
        });
        for lease in &leases {
            let meta = &lease["metadata"];
            let service = web::text(meta, "/labels/setpoint.dev~1service");
            let address = web::text(meta, "/annotations/setpoint.dev~1address");
            let addresses = targets.entry(service.to_owned()).or_default();
            addresses.push(self.cluster.process_at(address));
        }
        targets
    }

    /// Returns the metrics of a process as text.
    pub fn text(address: &Address) -> String {
        eventually(&format!("{address} returns its metrics"), || {
            let reply = http::get(address, "/metrics").map_err(|error| error.to_string())?;
            (reply.status == 200)
                .then_some(reply.body)
                .ok_or_else(|| reply.status.to_string())
        })
    }

    /// Returns all metrics of all processes.
    pub fn metrics(&self) -> BTreeMap<String, Family> {
        let mut all = BTreeMap::new();
        for address in self.targets().into_values().flatten() {
            for (name, family) in exposition::read(&Self::text(&address)) {
                let known: &mut Family = all.entry(name).or_default();
                known.samples += family.samples;
                known.help = family.help;
                known.r#type = family.r#type;
            }
        }
        all
    }
}
