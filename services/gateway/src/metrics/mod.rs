//! The metrics of the gateway, with the names, labels and buckets of Kubernetes' dashboards.

mod authentication;
mod authorization;
mod config_reloads;
mod conversions;
mod in_flight;
mod legacy_tokens;
mod pod_security;
mod request;
mod time_histogram;
mod watches;
mod webhook_authorizer;
mod writes;

pub(crate) use authentication::{JwtIssuer, hashed};
pub(crate) use authorization::{Authorization, authorized, refused_service};
pub(crate) use config_reloads::ConfigReloads;
pub(crate) use conversions::{converted, converted_versions};
pub(crate) use legacy_tokens::{LegacyToken, legacy_token_used};
pub(crate) use pod_security::{
    PodSecurityRequest, pod_security_evaluated, pod_security_exempted, pod_security_failed,
};
pub(crate) use request::{Request, RequestLabels};
pub(crate) use setpoint_telemetry::metrics::{counters, gauges, histograms};
pub(crate) use time_histogram::{TimeHistogram, TimeHistograms, time_histograms};
pub(crate) use watches::Watching;
pub(crate) use webhook_authorizer::WebhookAuthorizer;
pub(crate) use writes::{converged, fenced, flapped, written};
