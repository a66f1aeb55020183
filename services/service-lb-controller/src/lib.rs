//! The controller of load balancers: gives Services of the type `LoadBalancer` the addresses of nodes, at which the
//! proxies of the nodes accept their connections.
//!
//! ```text
//! no finalizer           ─▶ add service.kubernetes.io/load-balancer-cleanup
//! its ports are free     ─▶ status.loadBalancer.ingress: the addresses of nodes, as VIPs
//! an older Service has one of them, or there is no node  ─▶ no address, and a Warning that says so
//! another type, or being deleted  ─▶ no address, then no finalizer
//! ```
//! It does what the service controller and the load balancer of a cloud do together, and has their finalizer and their
//! Events. Services with a `loadBalancerClass` other than [`CLASS`] are another implementation's, and so is
//! `spec.loadBalancerIP`, which has no effect.

mod act;
mod claim;
mod node;
mod plan;
mod reconciler;
mod settings;
mod slice;
mod world;

pub use claim::{Claim, Port, contest};
pub use node::NodeView;
pub use plan::{Action, CLASS, FINALIZER, Ingress, is_ours, plan};
pub use reconciler::{Balancers, CONTROLLER};
pub use settings::Balancing;
pub use slice::SliceView;
pub use world::World;
