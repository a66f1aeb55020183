//! The built-in admission plugins.

#[warn(clippy::arithmetic_side_effects)]
pub(crate) mod lease_term;
pub(crate) mod limit_ranger;
pub(crate) mod namespace_lifecycle;
pub(crate) mod persistent_volume_claim_resize;
pub(crate) mod pod_resize_validator;
pub(crate) mod pod_topology_labels;
pub(crate) mod priority;
pub(crate) mod resource_quota;
mod runtime_class;
mod service_account;
pub(crate) mod service_ip_allocator;
