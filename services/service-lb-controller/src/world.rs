//! World: a Service, and the claims of all Services of load balancers.

use std::sync::Arc;

use setpoint_controller::Whole;
use setpoint_proto::core::Service;

use crate::Claim;

/// Everything that a plan depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The Service.
    pub service: Arc<Whole<Service>>,
    /// The claims of all Services that are this controller's, its own included if it is, in any order.
    pub claims: Vec<Claim>,
    /// The last problem of the Service that an Event was recorded of.
    pub reported: Option<String>,
}
