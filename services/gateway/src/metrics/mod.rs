//! What the gateway counts, under the names, labels and buckets that Kubernetes' dashboards know.

mod in_flight;
mod request;
mod watching;
mod written;

pub(crate) use request::{Request, RequestInfo};
pub(crate) use setpoint_telemetry::metrics::{counters, gauges, histograms};
pub(crate) use watching::Watching;
pub(crate) use written::{converged, fenced, flapped, written};
