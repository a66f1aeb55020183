//! Validation of the cluster IPs of a Service.

use std::collections::BTreeSet;

use setpoint_proto::core::ServiceSpec;

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::validation::ip;

const FAMILIES: &[&str] = &["IPv4", "IPv6"];
const POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];
const IMMUTABLE: &str = "may not change once set";

/// Validates the addresses of a Service that has some or is headless.
///
/// Addresses among `old` are not validated again.
pub(super) fn validate(
    spec: &ServiceSpec,
    old: &[String],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let at = path.field("clusterIPs");
    validate_mirror(spec, &at, errors);
    validate_families(spec, path, errors);
    if validate_addresses(&spec.cluster_ips, old, &at, errors) {
        validate_families_match(spec, &at, errors);
    }
    if is_headless(spec) && spec.r#type != "ClusterIP" {
        let detail = format!("may not be set to 'None' for {} services", spec.r#type);
        errors.invalid(&at.index(0), "None", detail);
    }
}

/// Validates that the address does not change, unless the type changes from or to ExternalName.
pub(super) fn validate_update(
    new: &ServiceSpec,
    old: &ServiceSpec,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let external = |spec: &ServiceSpec| spec.r#type == "ExternalName";
    if external(new) || external(old) || (is_headless(new) && is_headless(old)) {
        return;
    }
    let at = path.field("clusterIPs");
    match (old.cluster_ips.first(), new.cluster_ips.first()) {
        (Some(_), None) => {
            errors.invalid(
                &at.index(0),
                &new.cluster_ips,
                "primary clusterIP can not be unset",
            );
        }
        (Some(old), Some(now)) if old != now => {
            errors.invalid(&at.index(0), &new.cluster_ips, IMMUTABLE);
        }
        _ => {}
    }
    if is_headless(new) == is_headless(old) && old.ip_families.first() != new.ip_families.first() {
        let at = path.field("ipFamilies");
        errors.invalid(&at.index(0), &new.ip_families, IMMUTABLE);
    }
}

/// Returns whether the Service is headless, that is without a cluster IP.
pub(super) fn is_headless(spec: &ServiceSpec) -> bool {
    spec.cluster_ips == ["None"]
}

fn validate_mirror(spec: &ServiceSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let first = spec.cluster_ips.first().map_or("", String::as_str);
    if spec.cluster_ip.is_empty() && !spec.cluster_ips.is_empty() {
        let detail = "must be empty when `clusterIP` is not specified";
        errors.invalid(path, &spec.cluster_ips, detail);
    } else if spec.cluster_ip != first {
        let detail = "first value must match `clusterIP`";
        errors.invalid(path, &spec.cluster_ips, detail);
    }
}

/// Validates each address by itself. Returns whether all are valid.
fn validate_addresses(
    addresses: &[String],
    old: &[String],
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) -> bool {
    let before = errors.count();
    for (index, address) in addresses.iter().enumerate() {
        if index == 0 && address == "None" {
            if addresses.len() > 1 {
                let detail = "'None' must be the first and only value";
                errors.invalid(path, addresses, detail);
            }
        } else if !old.contains(address) {
            ip::validate(address, &path.index(index), errors);
        }
    }
    let valid = errors.count() == before;
    if addresses.len() > 2 {
        errors.invalid(path, addresses, "may only hold up to 2 values");
    }
    valid
}

/// Validates that the addresses are of different families, and of those that are listed.
fn validate_families_match(spec: &ServiceSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let addresses = &spec.cluster_ips;
    let v6 = addresses.iter().filter(|address| is_v6(address)).count();
    if addresses.len() > 1 && [0, addresses.len()].contains(&v6) {
        let detail = "may specify no more than one IP for each IP family";
        errors.invalid(path, addresses, detail);
    }
    if is_headless(spec) {
        return;
    }
    for (index, (address, family)) in addresses.iter().zip(&spec.ip_families).enumerate() {
        let fits = match family.as_str() {
            "IPv4" => !is_v6(address),
            "IPv6" => is_v6(address),
            _ => true,
        };
        if !fits {
            let detail =
                format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.invalid(&path.index(index), address, detail);
        }
    }
}

/// Returns whether a valid address is one of IPv6.
pub(super) fn is_v6(address: &str) -> bool {
    address.contains(':')
}

fn validate_families(spec: &ServiceSpec, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let at = path.field("ipFamilies");
    let mut seen = BTreeSet::new();
    for (index, family) in spec.ip_families.iter().enumerate() {
        let at = at.index(index);
        errors.one_of(&at, family.as_str(), FAMILIES);
        if !seen.insert(family) {
            errors.duplicate(&at, family);
        }
    }
    let (at, policy) = (
        path.field("ipFamilyPolicy"),
        spec.ip_family_policy.as_deref(),
    );
    errors.one_of(&at, policy, POLICIES);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_old_spec_are_accepted() {
        let old = ["1.2.3.04".to_owned(), "2001:db8::4".to_owned()];
        let mut spec = ServiceSpec {
            r#type: "ClusterIP".into(),
            cluster_ip: "1.2.3.04".into(),
            ..Default::default()
        };
        for kept in [&old[..1], &old] {
            spec.cluster_ips = kept.to_vec();
            let mut errors = FieldErrors::default();
            validate(&spec, &old, &FieldPath::root("spec"), &mut errors);
            assert_eq!(errors.to_string(), "[]");
        }
        let mut errors = FieldErrors::default();
        validate(&spec, &[], &FieldPath::root("spec"), &mut errors);
        assert_eq!(errors.count(), 1);
    }
}
