//! Validation of traffic: external addresses, source ranges, policies, and session affinity.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use setpoint_model::names;
use setpoint_proto::core::{Service, ServiceSpec};

use super::{is_reached_from_outside, uses_health_check};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::ip;
use crate::validation::podspec::validate_port;

const AFFINITIES: &[&str] = &["ClientIP", "None"];
const POLICIES: &[&str] = &["Cluster", "Local"];
const DISTRIBUTIONS: &[&str] = &["PreferClose", "PreferSameZone", "PreferSameNode"];
/// The longest session affinity, in seconds: a day.
const AFFINITY_TIMEOUT_MAX: i32 = 86_400;
const LOAD_BALANCER_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
/// The older name of [`TOPOLOGY_MODE`].
const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// Validates the traffic of a Service.
///
/// Addresses and ranges of `old` are not validated again.
pub(super) fn validate(
    service: &Service,
    old: &Service,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let spec = &service.spec;
    validate_annotated_ranges(service, old, errors);
    validate_topology(service, errors);
    validate_affinity(spec, path, errors);
    let at = path.field("externalIPs");
    for (index, address) in spec.external_ips.iter().enumerate() {
        let path = at.index(index);
        let before = errors.count();
        if !old.spec.external_ips.contains(address) {
            ip::validate(address, &path, errors);
        }
        if errors.count() == before {
            validate_external(address, &path, errors);
        }
    }
    validate_balancer(service, old, path, errors);
    validate_policy(spec, path, errors);
    let internal = spec.internal_traffic_policy.as_deref();
    errors.one_of(&path.field("internalTrafficPolicy"), internal, POLICIES);
    let distribution = spec.traffic_distribution.as_deref();
    errors.one_of(
        &path.field("trafficDistribution"),
        distribution,
        DISTRIBUTIONS,
    );
}

/// Validates a change of the traffic of a Service.
pub(super) fn validate_update(
    new: &ServiceSpec,
    old: &ServiceSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let balanced = [new, old].iter().all(|spec| spec.r#type == "LoadBalancer");
    if balanced && new.load_balancer_class != old.load_balancer_class {
        let at = path.field("loadBalancerClass");
        errors.invalid(&at, &new.load_balancer_class, "may not change once set");
    }
    let checked = uses_health_check(new) && uses_health_check(old);
    if checked && new.health_check_node_port != old.health_check_node_port {
        errors.forbidden(&path.field("healthCheckNodePort"), "field is immutable");
    }
}

fn validate_affinity(spec: &ServiceSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("sessionAffinity");
    errors.one_of_or_empty(&at, &spec.session_affinity, AFFINITIES);
    let config = spec.session_affinity_config.as_ref();
    let timeout = config.and_then(|config| config.client_ip.as_ref()?.timeout_seconds);
    if spec.session_affinity == "ClientIP"
        && let Some(timeout) = timeout
        && !(1..=AFFINITY_TIMEOUT_MAX).contains(&timeout)
    {
        let at = path.field("sessionAffinityConfig");
        let detail = format!("must be greater than 0 and less than {AFFINITY_TIMEOUT_MAX}");
        errors.invalid(
            &at.field("clientIP").field("timeoutSeconds"),
            timeout,
            detail,
        );
    }
}

/// Validates an external address: it must not be local to a node.
fn validate_external(text: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let Some(address) = ip::parse(text) else {
        return;
    };
    if address.is_unspecified() {
        errors.invalid(path, text, format!("may not be unspecified ({text})"));
    }
    if address.is_loopback() {
        errors.invalid(
            path,
            text,
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        );
    }
    let (link_local, link_local_multicast) = match address {
        IpAddr::V4(v4) => (
            v4.is_link_local(),
            v4.octets()[..3] == Ipv4Addr::new(224, 0, 0, 0).octets()[..3],
        ),
        IpAddr::V6(v6) => (
            v6.is_unicast_link_local(),
            v6.segments()[0] & 0xff0f == 0xff02,
        ),
    };
    if link_local {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        errors.invalid(path, text, detail);
    }
    if link_local_multicast {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.invalid(path, text, detail);
    }
}

fn validate_balancer(
    service: &Service,
    old: &Service,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let spec = &service.spec;
    let balanced = spec.r#type == "LoadBalancer";
    let annotations = FieldPath::root("metadata");
    let annotations = annotations.field("annotations");
    // Kubernetes writes this field with a capital letter.
    let ranges = path.field("LoadBalancerSourceRanges");
    let annotated = annotated_ranges(service);
    for (given, path) in [
        (!spec.load_balancer_source_ranges.is_empty(), ranges),
        (annotated.is_some(), annotations.key(SOURCE_RANGES)),
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
            errors.forbidden(&path, LOAD_BALANCER_ONLY);
        }
    }
    let known = old.spec.load_balancer_source_ranges.iter();
    let known: BTreeSet<_> = known.map(|range| range.trim()).collect();
    for (index, range) in spec.load_balancer_source_ranges.iter().enumerate() {
        if !known.contains(range.trim()) {
            ip::validate_range(range.trim(), &ranges.index(index), errors);
        }
    }
    if let Some(class) = &spec.load_balancer_class
        && balanced
    {
        errors.check(
            &path.field("loadBalancerClass"),
            class,
            names::validate_qualified_name,
        );
    }
}

/// Returns the source ranges in the annotation, which is ignored if the field is set.
fn annotated_ranges(service: &Service) -> Option<&str> {
    let ranges = service.metadata.annotations.get(SOURCE_RANGES)?;
    let unset = service.spec.load_balancer_source_ranges.is_empty();
    unset.then_some(ranges)
}

/// Validates the source ranges in the annotation, unless it is unchanged.
fn validate_annotated_ranges(new: &Service, old: &Service, errors: &mut FieldErrors) {
    let Some(ranges) = annotated_ranges(new) else {
        return;
    };
    let before = old.metadata.annotations.get(SOURCE_RANGES);
    if before.is_some_and(|before| before == ranges) || ranges.trim().is_empty() {
        return;
    }
    let path = FieldPath::root("metadata");
    let path = path.field("annotations");
    for range in ranges.split(',') {
        ip::validate_range(range.trim(), &path.key(SOURCE_RANGES), errors);
    }
}

/// Validates that the annotation and its older name agree.
fn validate_topology(service: &Service, errors: &mut FieldErrors) {
    let annotations = &service.metadata.annotations;
    if let (Some(mode), Some(hints)) = (
        annotations.get(TOPOLOGY_MODE),
        annotations.get(TOPOLOGY_HINTS),
    ) && mode != hints
    {
        let path = FieldPath::root("metadata");
        let path = path.field("annotations");
        let detail = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
        errors.invalid(&path.key(TOPOLOGY_MODE), mode, detail);
    }
}

fn validate_policy(spec: &ServiceSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let (at, policy) = (
        path.field("externalTrafficPolicy"),
        spec.external_traffic_policy.as_str(),
    );
    match is_reached_from_outside(spec) {
        true => errors.one_of_or_empty(&at, policy, POLICIES),
        false if !policy.is_empty() => {
            let detail = "may only be set for externally-accessible services";
            errors.invalid(&at, policy, detail);
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
        true => validate_port(port, &at, errors),
        false => {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.invalid(&at, port, detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(new: &Service, old: &Service) -> String {
        let mut errors = FieldErrors::default();
        validate(new, old, &FieldPath::root("spec"), &mut errors);
        errors.to_string()
    }

    fn balancer(ranges: &[&str]) -> Service {
        let mut service = Service::default();
        service.spec.r#type = "LoadBalancer".into();
        let ranges = ranges.iter().map(|range| (*range).to_owned());
        service.spec.load_balancer_source_ranges = ranges.collect();
        service
    }

    #[test]
    fn addresses_of_the_old_spec_are_accepted_and_new_ones_validated() {
        let (mut old, mut new) = (balancer(&[]), balancer(&[]));
        old.spec.external_ips = vec!["5.6.7.8".into(), "1.2.3.04".into()];
        for known in [&["1.2.3.04"][..], &["9.9.9.9", "1.2.3.04"], &["1.2.3.4"]] {
            new.spec.external_ips = known.iter().map(|ip| (*ip).to_owned()).collect();
            assert_eq!(complaints(&new, &old), "[]");
        }
        new.spec.external_ips = vec!["1.2.3.05".into()];
        assert!(complaints(&new, &old).starts_with("spec.externalIPs[0]: Invalid value"));
        old.spec.external_ips = vec!["127.0.0.01".into()];
        new.spec.external_ips = vec!["127.0.0.01".into()];
        assert!(complaints(&new, &old).contains("may not be in the loopback range"));
    }

    #[test]
    fn ranges_of_the_old_spec_are_accepted_and_new_ones_validated() {
        let old = balancer(&["1.2.3.0/24", "010.0.0.0/8 "]);
        for known in [
            &["010.0.0.0/8"][..],
            &["1.2.0.0/16", "010.0.0.0/8"],
            &["10.0.0.0/8"],
        ] {
            assert_eq!(complaints(&balancer(known), &old), "[]");
        }
        let complaint = complaints(&balancer(&["011.0.0.0/8"]), &old);
        assert!(complaint.starts_with("spec.LoadBalancerSourceRanges[0]: Invalid value"));
    }
}
