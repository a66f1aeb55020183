//! The writes of slices and Endpoints.

use setpoint_model::Target;
use setpoint_proto::core::Endpoints;
use setpoint_proto::discovery::EndpointSlice;

/// A write of a slice or of Endpoints, or an Event about them.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create a slice.
    Create(Box<EndpointSlice>),
    /// Replace a slice.
    Update(Box<EndpointSlice>),
    /// Delete a slice.
    Delete(Target),
    /// Create Endpoints.
    CreateEndpoints(Box<Endpoints>),
    /// Replace Endpoints.
    UpdateEndpoints(Box<Endpoints>),
    /// Record an Event about an address that no slice may have: a Service has no field for it.
    Report(String),
}
