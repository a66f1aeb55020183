//! Labels of EndpointSlices.

/// The name of the Service that a slice has endpoints of.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The controller that writes a slice. Others leave it alone.
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// On a slice, and on Endpoints, of a Service without an address.
pub const HEADLESS: &str = "service.kubernetes.io/headless";
