//! The metrics of the gateway, with the names, labels and buckets of Kubernetes' dashboards.

mod authorization;
mod conversions;
mod in_flight;
mod pod_security;
mod request;
mod watches;
mod writes;

pub(crate) use authorization::{Authorization, authorized, refused_service};
pub(crate) use conversions::{converted, converted_versions};
pub(crate) use pod_security::{
    PodSecurityRequest, pod_security_evaluated, pod_security_exempted, pod_security_failed,
};
pub(crate) use request::{Request, RequestLabels};
pub(crate) use setpoint_telemetry::metrics::{counters, gauges, histograms};
pub(crate) use watches::Watching;
pub(crate) use writes::{converged, fenced, flapped, written};
