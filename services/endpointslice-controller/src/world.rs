//! World: a Service with its Pods, slices and Endpoints.

use std::sync::Arc;

use setpoint_controller::Whole;
use setpoint_proto::core::{Endpoints, Service};
use setpoint_proto::discovery::EndpointSlice;

use crate::PodView;
use crate::topology::Zones;

/// Everything that a plan depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The Service.
    pub service: Arc<Whole<Service>>,
    /// The Pods that it selects, in any order.
    pub pods: Vec<Arc<PodView>>,
    /// The zones of the nodes of these Pods.
    pub zones: Zones,
    /// The slices that name it, in any order.
    pub slices: Vec<Arc<Whole<EndpointSlice>>>,
    /// The Endpoints of its name.
    pub endpoints: Option<Arc<Whole<Endpoints>>>,
    /// Whether there is an Event about addresses to which the Service may not forward.
    pub is_reported: bool,
    /// A random number, for the names of new slices.
    pub seed: u64,
}
