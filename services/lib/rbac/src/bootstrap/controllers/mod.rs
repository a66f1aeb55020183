//! Roles for the controllers of Kubernetes. Each is bound to the ServiceAccount of its controller in `kube-system`.

mod cluster;
mod network;
mod storage;
mod workloads;

use setpoint_proto::rbac::{ClusterRole, ClusterRoleBinding};

use super::object::{cluster_role, cluster_role_binding, service_account};
use super::rule::Table;

pub fn cluster_roles() -> Vec<ClusterRole> {
    let controllers = controllers().into_iter();
    controllers
        .map(|(controller, rules)| cluster_role(&role_of(controller), rules))
        .collect()
}

pub fn cluster_role_bindings() -> Vec<ClusterRoleBinding> {
    let controllers = controllers().into_iter();
    controllers
        .map(|(controller, _)| {
            cluster_role_binding(&role_of(controller), vec![service_account(controller)])
        })
        .collect()
}

fn role_of(controller: &str) -> String {
    format!("system:controller:{controller}")
}

fn controllers() -> Table {
    [
        workloads::controllers(),
        storage::controllers(),
        network::controllers(),
        cluster::controllers(),
    ]
    .concat()
}
