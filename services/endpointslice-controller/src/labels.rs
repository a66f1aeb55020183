//! Labels of EndpointSlices and Endpoints.

use std::collections::BTreeMap;

use setpoint_model::endpointslice::{HEADLESS, MANAGED_BY, SERVICE_NAME};
use setpoint_proto::core::Service;

/// Writes the slices of Services with a selector.
pub(crate) const FROM_PODS: &str = "endpointslice-controller.k8s.io";
/// Writes the slices of Services without a selector.
pub(crate) const FROM_ENDPOINTS: &str = "endpointslicemirroring-controller.k8s.io";
/// On Endpoints: whether they are not mirrored.
const SKIP_MIRROR: &str = "endpointslice.kubernetes.io/skip-mirror";
/// On Endpoints: the controller that writes them.
const ENDPOINTS_MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const ENDPOINTS_CONTROLLER: &str = "endpoint-controller";
/// On Endpoints: once the lock of an election.
const ELECTION: &str = "control-plane.alpha.kubernetes.io/leader";

type Labels = BTreeMap<String, String>;

/// Returns whether a Service has no cluster IP.
pub(crate) fn is_headless(service: &Service) -> bool {
    ["", "None"].contains(&service.spec.cluster_ip.as_str())
}

/// Returns the labels of the slices with the Pods of a Service.
pub(crate) fn of_slices(service: &Service) -> Labels {
    let mut labels = with_headless(service);
    insert(&mut labels, SERVICE_NAME, &service.metadata.name);
    insert(&mut labels, MANAGED_BY, FROM_PODS);
    labels
}

/// Returns the labels of the slices that mirror Endpoints.
pub(crate) fn of_mirrors(endpoints: &Labels, service: &str) -> Labels {
    let mut labels = endpoints.clone();
    insert(&mut labels, SERVICE_NAME, service);
    insert(&mut labels, MANAGED_BY, FROM_ENDPOINTS);
    labels
}

/// Returns the labels of the Endpoints of a Service.
pub(crate) fn of_endpoints(service: &Service) -> Labels {
    let mut labels = with_headless(service);
    insert(&mut labels, ENDPOINTS_MANAGED_BY, ENDPOINTS_CONTROLLER);
    labels
}

/// Returns whether Endpoints of a Service without a selector are mirrored: not those that a controller wrote while it
/// had one.
pub(crate) fn is_mirrored(labels: &Labels, annotations: &Labels) -> bool {
    labels.get(SKIP_MIRROR).is_none_or(|skip| skip != "true")
        && !labels.contains_key(ENDPOINTS_MANAGED_BY)
        && !annotations.contains_key(ELECTION)
}

fn with_headless(service: &Service) -> Labels {
    let mut labels = service.metadata.labels.clone();
    labels.remove(HEADLESS);
    if is_headless(service) {
        insert(&mut labels, HEADLESS, "");
    }
    labels
}

fn insert(labels: &mut Labels, key: &str, value: &str) {
    labels.insert(key.to_owned(), value.to_owned());
}
