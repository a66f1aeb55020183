//! The address of a Service within the cluster.

use std::collections::BTreeSet;

use setpoint_proto::core::ServiceSpec;

use crate::registry::ip;
use crate::registry::path::Path;
use crate::registry::problems::Problems;

const FAMILIES: &[&str] = &["IPv4", "IPv6"];
const POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];
const ONCE: &str = "may not change once set";

/// Finds what is wrong with the address of a Service that has one, or none on purpose.
pub(super) fn validate(spec: &ServiceSpec, path: &Path<'_>, problems: &mut Problems) {
    let at = path.field("clusterIPs");
    validate_mirror(spec, &at, problems);
    validate_addresses(&spec.cluster_ips, &at, problems);
    validate_families(spec, path, problems);
    if is_headless(spec) && spec.r#type != "ClusterIP" {
        let detail = format!("may not be set to 'None' for {} services", spec.r#type);
        problems.invalid(&at.index(0), "None", detail);
    }
}

/// Finds what is wrong with a change of the address: there is none, but from and to a name elsewhere.
pub(super) fn validate_update(
    new: &ServiceSpec,
    old: &ServiceSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let elsewhere = |spec: &ServiceSpec| spec.r#type == "ExternalName";
    if elsewhere(new) || elsewhere(old) || (is_headless(new) && is_headless(old)) {
        return;
    }
    let at = path.field("clusterIPs");
    match (old.cluster_ips.first(), new.cluster_ips.first()) {
        (Some(_), None) => {
            problems.invalid(
                &at.index(0),
                &new.cluster_ips,
                "primary clusterIP can not be unset",
            );
        }
        (Some(old), Some(now)) if old != now => {
            problems.invalid(&at.index(0), &new.cluster_ips, ONCE);
        }
        _ => {}
    }
    if is_headless(new) == is_headless(old) && old.ip_families.first() != new.ip_families.first() {
        let at = path.field("ipFamilies");
        problems.invalid(&at.index(0), &new.ip_families, ONCE);
    }
}

/// Does it stand for its Pods' own addresses?
fn is_headless(spec: &ServiceSpec) -> bool {
    spec.cluster_ips == ["None"]
}

fn validate_mirror(spec: &ServiceSpec, path: &Path<'_>, problems: &mut Problems) {
    let first = spec.cluster_ips.first().map_or("", String::as_str);
    if spec.cluster_ip.is_empty() && !first.is_empty() {
        let detail = "must be empty when `clusterIP` is not specified";
        problems.invalid(path, &spec.cluster_ips, detail);
    } else if spec.cluster_ip != first {
        let detail = "first value must match `clusterIP`";
        problems.invalid(path, &spec.cluster_ips, detail);
    }
}

fn validate_addresses(addresses: &[String], path: &Path<'_>, problems: &mut Problems) {
    if addresses == ["None"] {
        return;
    }
    let before = problems.count();
    for (index, address) in addresses.iter().enumerate() {
        if index == 0 && address == "None" {
            let detail = "'None' must be the first and only value";
            problems.invalid(path, addresses, detail);
        } else {
            ip::validate(address, &path.index(index), problems);
        }
    }
    if addresses.len() > 2 {
        problems.invalid(path, addresses, "may only hold up to 2 values");
    }
    if problems.count() > before {
        return;
    }
    if !ip::are_of_different_families(addresses.iter().map(String::as_str)) {
        let detail = "may specify no more than one IP for each IP family";
        problems.invalid(path, addresses, detail);
        return;
    }
    // The cluster has one range, and that is of IPv4.
    for (index, address) in addresses.iter().enumerate() {
        if address.contains(':') {
            let detail = "IPv6 is not configured on this cluster";
            problems.invalid(&path.index(index), addresses, detail);
        }
    }
}

fn validate_families(spec: &ServiceSpec, path: &Path<'_>, problems: &mut Problems) {
    let at = path.field("ipFamilies");
    let mut seen = BTreeSet::new();
    for (index, family) in spec.ip_families.iter().enumerate() {
        let at = at.index(index);
        if !FAMILIES.contains(&family.as_str()) {
            problems.unsupported(&at, family, FAMILIES);
        } else if !seen.insert(family) {
            problems.duplicate(&at, family);
        } else if family == "IPv6" && !is_headless(spec) {
            problems.invalid(&at, family, "not configured on this cluster");
        }
    }
    let (at, policy) = (
        path.field("ipFamilyPolicy"),
        spec.ip_family_policy.as_deref(),
    );
    problems.one_of_if_given(&at, policy, POLICIES);
    let selects_nothing = is_headless(spec) && spec.selector.is_empty();
    if policy == Some("RequireDualStack") && !selects_nothing {
        let detail = "this cluster is not configured for dual-stack services";
        problems.invalid(&at, policy, detail);
    }
}
