//! Warnings about a Service.

use setpoint_proto::core::{Service, ServiceSpec};

use crate::validation::field_path::FieldPath;
use crate::validation::warnings::{Warnings, warn_of_address, warn_of_addresses, warn_of_range};

const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const EXTERNAL_NAME: &str = "ExternalName";

/// Warns of fields that are deprecated or have no effect, and of addresses.
pub(super) fn warn(service: &Service, warnings: &mut Warnings) {
    let (path, spec) = (FieldPath::root("spec"), &service.spec);
    if service.metadata.annotations.contains_key(TOPOLOGY_HINTS) {
        warnings.add(format!(
            "annotation {TOPOLOGY_HINTS} is deprecated, please use {TOPOLOGY_MODE} instead"
        ));
    }
    if !["", "None"].contains(&spec.cluster_ip.as_str()) {
        warn_of_addresses(&spec.cluster_ips, &path.field("clusterIPs"), warnings);
    }
    if is_headless(spec) {
        warn_of_headless(spec, warnings);
    }
    warn_of_addresses(&spec.external_ips, &path.field("externalIPs"), warnings);
    if !spec.external_ips.is_empty() && !is_headless(spec) && spec.r#type != EXTERNAL_NAME {
        warnings.add(
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        );
    }
    let at = path.field("loadBalancerIP");
    warn_of_address(&spec.load_balancer_ip, &at, warnings);
    let at = path.field("loadBalancerSourceRanges");
    for (index, range) in spec.load_balancer_source_ranges.iter().enumerate() {
        warn_of_range(range, &at.index(index), warnings);
    }
    warn_of_type(spec, warnings);
    if spec.traffic_distribution.as_deref() == Some("PreferClose") {
        warnings
            .add(r#"spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone""#);
    }
}

fn is_headless(spec: &ServiceSpec) -> bool {
    spec.r#type == "ClusterIP" && spec.cluster_ip == "None"
}

fn warn_of_headless(spec: &ServiceSpec, warnings: &mut Warnings) {
    if !spec.load_balancer_ip.is_empty() {
        warnings.add("spec.loadBalancerIP is ignored for headless services");
    }
    if !spec.external_ips.is_empty() {
        warnings.add("spec.externalIPs is ignored for headless services");
    }
    if spec.session_affinity != "None" {
        warnings.add("spec.SessionAffinity is ignored for headless services");
    }
}

/// Warns of fields that only Services of another type read.
fn warn_of_type(spec: &ServiceSpec, warnings: &mut Warnings) {
    let is_name = spec.r#type == EXTERNAL_NAME;
    if is_name && !spec.external_ips.is_empty() {
        warnings.add(r#"spec.externalIPs is ignored when spec.type is "ExternalName""#);
    }
    if !is_name && !spec.external_name.is_empty() {
        warnings.add(r#"spec.externalName is ignored when spec.type is not "ExternalName""#);
    }
}
