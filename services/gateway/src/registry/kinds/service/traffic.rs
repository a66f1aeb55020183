//! Who reaches a Service, from where, and which Pod answers.

use std::net::{IpAddr, Ipv4Addr};

use setpoint_model::names;
use setpoint_proto::core::{Service, ServiceSpec};

use super::{is_reached_from_outside, uses_health_check};
use crate::registry::ip;
use crate::registry::path::Path;
use crate::registry::podspec::validate_port;
use crate::registry::problems::Problems;

const AFFINITIES: &[&str] = &["ClientIP", "None"];
const POLICIES: &[&str] = &["Cluster", "Local"];
const DISTRIBUTIONS: &[&str] = &["PreferClose", "PreferSameZone", "PreferSameNode"];
/// A day, the longest that a client stays with one Pod.
const STICKY_MAX: i32 = 86_400;
const FOR_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";
const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

/// Finds what is wrong with the ways to a Service.
pub(super) fn validate(service: &Service, path: &Path<'_>, problems: &mut Problems) {
    let spec = &service.spec;
    validate_affinity(spec, path, problems);
    let at = path.field("externalIPs");
    for (index, address) in spec.external_ips.iter().enumerate() {
        validate_external(address, &at.index(index), problems);
    }
    validate_balancer(service, path, problems);
    validate_policy(spec, path, problems);
    let internal = spec.internal_traffic_policy.as_deref();
    problems.one_of_if_given(&path.field("internalTrafficPolicy"), internal, POLICIES);
    let distribution = spec.traffic_distribution.as_deref();
    problems.one_of_if_given(
        &path.field("trafficDistribution"),
        distribution,
        DISTRIBUTIONS,
    );
}

/// Finds what is wrong with a change of the ways to a Service.
pub(super) fn validate_update(
    new: &ServiceSpec,
    old: &ServiceSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let balanced = [new, old].iter().all(|spec| spec.r#type == "LoadBalancer");
    if balanced && new.load_balancer_class != old.load_balancer_class {
        let at = path.field("loadBalancerClass");
        problems.invalid(&at, &new.load_balancer_class, "may not change once set");
    }
    let checked = uses_health_check(new) && uses_health_check(old);
    if checked && new.health_check_node_port != old.health_check_node_port {
        problems.forbidden(&path.field("healthCheckNodePort"), "field is immutable");
    }
}

fn validate_affinity(spec: &ServiceSpec, path: &Path<'_>, problems: &mut Problems) {
    let at = path.field("sessionAffinity");
    problems.one_of(&at, &spec.session_affinity, AFFINITIES);
    let config = spec.session_affinity_config.as_ref();
    let timeout = config.and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
    if spec.session_affinity == "ClientIP"
        && let Some(timeout) = timeout
        && !(1..=STICKY_MAX).contains(&timeout)
    {
        let at = path.field("sessionAffinityConfig");
        let detail = format!("must be greater than 0 and less than {STICKY_MAX}");
        problems.invalid(
            &at.field("clientIP").field("timeoutSeconds"),
            timeout,
            detail,
        );
    }
}

/// An address outside that leads to the nodes; it cannot be a node's own business.
fn validate_external(text: &str, path: &Path<'_>, problems: &mut Problems) {
    let before = problems.count();
    ip::validate(text, path, problems);
    let Ok(address) = text.parse::<IpAddr>() else {
        return;
    };
    if problems.count() > before {
        return;
    }
    if address.is_unspecified() {
        problems.invalid(path, text, "may not be unspecified (0.0.0.0 or ::)");
    }
    if address.is_loopback() {
        problems.invalid(
            path,
            text,
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        );
    }
    let (alone, together) = match address {
        IpAddr::V4(v4) => (
            v4.is_link_local(),
            v4.octets()[..3] == Ipv4Addr::new(224, 0, 0, 0).octets()[..3],
        ),
        IpAddr::V6(v6) => (
            v6.is_unicast_link_local(),
            v6.segments()[0] & 0xff0f == 0xff02,
        ),
    };
    if alone {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        problems.invalid(path, text, detail);
    }
    if together {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        problems.invalid(path, text, detail);
    }
}

fn validate_balancer(service: &Service, path: &Path<'_>, problems: &mut Problems) {
    let spec = &service.spec;
    let balanced = spec.r#type == "LoadBalancer";
    let annotations = Path::root("metadata");
    let annotations = annotations.field("annotations");
    // Upstream writes this field with a capital letter.
    let ranges = path.field("LoadBalancerSourceRanges");
    let annotated = service.metadata.annotations.get(RANGES);
    for (given, path) in [
        (!spec.load_balancer_source_ranges.is_empty(), ranges),
        (annotated.is_some(), annotations.key(RANGES)),
        (
            spec.allocate_load_balancer_node_ports.is_some(),
            path.field("allocateLoadBalancerNodePorts"),
        ),
        (
            spec.load_balancer_class.is_some(),
            path.field("loadBalancerClass"),
        ),
    ] {
        if given && !balanced {
            problems.forbidden(&path, FOR_BALANCERS);
        }
    }
    for (index, range) in spec.load_balancer_source_ranges.iter().enumerate() {
        ip::validate_range(range.trim(), &ranges.index(index), problems);
    }
    if let Some(class) = &spec.load_balancer_class
        && balanced
    {
        let wrong = names::validate_qualified_name(class);
        problems.all_invalid(&path.field("loadBalancerClass"), class, wrong);
    }
}

fn validate_policy(spec: &ServiceSpec, path: &Path<'_>, problems: &mut Problems) {
    let (at, policy) = (
        path.field("externalTrafficPolicy"),
        spec.external_traffic_policy.as_str(),
    );
    match is_reached_from_outside(spec) {
        true => problems.one_of(&at, policy, POLICIES),
        false if !policy.is_empty() => {
            let detail = "may only be set for externally-accessible services";
            problems.invalid(&at, policy, detail);
        }
        false => {}
    }
    let (at, port) = (
        path.field("healthCheckNodePort"),
        spec.health_check_node_port,
    );
    if port == 0 {
        return;
    }
    match uses_health_check(spec) {
        true => validate_port(port, &at, problems),
        false => {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            problems.invalid(&at, port, detail);
        }
    }
}
