//! Health checks of Services with the external policy Local: `spec.healthCheckNodePort` answers at each node whether it
//! has ready endpoints, so that a load balancer sends it connections or not.

mod connection;
mod plan;
mod server;

pub use plan::{HealthCheck, health_check};
pub use server::Servers;
