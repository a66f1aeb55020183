//! The rules of each kind, one file each.

mod configmap;
mod deployment;
mod event;
mod lease;
mod namespace;
mod node;
mod pod;
mod replicaset;
mod secret;
mod service;
mod serviceaccount;
mod template;

pub(super) use pod::grace_of;
pub(super) use service::{settle_families, uses_health_check, uses_node_ports};
