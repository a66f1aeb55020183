//! Registration: the Service of the cluster's DNS, and an EndpointSlice for each replica.
//!
//! The Service has no selector, since replicas are no Pods. Each replica makes its own slice when it is ready, and
//! removes it when it stops. Any replica removes the slices of replicas that have ended: those without a Lease, which
//! each replica has in `setpoint-replicas` and deletes when it stops, and those whose Lease is not renewed any more.
//!
//! A Lease counts as abandoned once this replica has renewed its own four times since the last renewal of the
//! other: both are seen by the same watch, so that neither clocks nor the absence of all gateways make a difference.
//! After the gateways come back, others have that many renewals to follow.

mod act;
mod plan;
mod renewals;
mod run;
mod world;

pub use plan::{Action, plan};
pub use renewals::Renewals;
pub use run::{Registration, Settings};
pub use world::{Replica, World};

/// The namespace of the Service.
pub const NAMESPACE: &str = "kube-system";
/// The name of the Service.
pub const SERVICE: &str = "kube-dns";
/// The label value of the slices that replicas keep.
pub const MANAGED_BY: &str = "dns.setpoint.dev";
