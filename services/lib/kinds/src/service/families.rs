//! The IP families of a Service. The cluster is single-stack, with IPv4.

use setpoint_proto::core::ServiceSpec;

use super::address::{is_headless, is_v6};
use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;

const V4: &str = "IPv4";
const V6: &str = "IPv6";
const SINGLE: &str = "SingleStack";
const DUAL: &str = "RequireDualStack";

/// Sets default families and a default policy for a valid Service, and finds families that the cluster does not have.
pub fn complete(spec: &mut ServiceSpec, old: Option<&ServiceSpec>, errors: &mut FieldErrors) {
    if spec.r#type == "ExternalName" {
        return;
    }
    // Its endpoints are not managed by the cluster, and may be of both families.
    let unmanaged = is_headless(spec) && spec.selector.is_empty();
    let before = old.and_then(|old| old.ip_family_policy.clone());
    let default = if unmanaged { DUAL } else { SINGLE };
    let default = || before.unwrap_or_else(|| default.into());
    let policy = spec.ip_family_policy.get_or_insert_with(default).clone();
    release(spec, old, &policy, errors);
    check_policy(spec, &policy, errors);
    infer(spec, errors);
    if errors.count() > 0 {
        return;
    }
    if unmanaged {
        add_default_families(&mut spec.ip_families, &policy);
        return;
    }
    check_cluster(spec, &policy, errors);
    if spec.ip_families.is_empty() {
        spec.ip_families.push(V4.into());
    }
}

/// Releases the second family if the policy is `SingleStack`; removing it under another policy is an error.
fn release(
    spec: &mut ServiceSpec,
    old: Option<&ServiceSpec>,
    policy: &str,
    errors: &mut FieldErrors,
) {
    let Some(old) = old else {
        return;
    };
    let (now, before) = (&mut spec.ip_families, &old.ip_families);
    if policy == SINGLE && now == before {
        now.truncate(1);
    } else if policy != SINGLE && !now.is_empty() && now.len() < before.len() {
        let detail = "must be 'SingleStack' to release the secondary IP family";
        let path = FieldPath::root("spec");
        errors.invalid(&path.field("ipFamilyPolicy"), policy, detail);
    }
}

/// Validates that the policy allows two addresses or families.
fn check_policy(spec: &ServiceSpec, policy: &str, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    for (count, what) in [
        (spec.cluster_ips.len(), "cluster IPs"),
        (spec.ip_families.len(), "IP families"),
    ] {
        if policy == SINGLE && count == 2 {
            let detail = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            errors.invalid(&path.field("ipFamilyPolicy"), policy, detail);
        }
    }
}

/// Adds the families of addresses for which none is listed.
fn infer(spec: &mut ServiceSpec, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    let path = path.field("clusterIPs");
    if is_headless(spec) {
        return;
    }
    for (index, address) in spec.cluster_ips.iter().enumerate() {
        if index < spec.ip_families.len() {
            continue;
        }
        if is_v6(address) {
            let detail = "IPv6 is not configured on this cluster";
            errors.invalid(&path.index(index), &spec.cluster_ips, detail);
        } else {
            spec.ip_families.push(V4.into());
        }
    }
}

/// Adds the default family, and the second one if the policy asks for both.
fn add_default_families(families: &mut Vec<String>, policy: &str) {
    if families.is_empty() {
        families.push(V4.into());
    }
    if policy != SINGLE && families.len() < 2 {
        let other = if families[0] == V4 { V6 } else { V4 };
        families.push(other.into());
    }
}

/// Finds families that the cluster does not have.
fn check_cluster(spec: &ServiceSpec, policy: &str, errors: &mut FieldErrors) {
    let path = FieldPath::root("spec");
    if policy == DUAL {
        let detail = "this cluster is not configured for dual-stack services";
        errors.invalid(&path.field("ipFamilyPolicy"), policy, detail);
    }
    let path = path.field("ipFamilies");
    for (index, family) in spec.ip_families.iter().enumerate() {
        if family != V4 {
            errors.invalid(&path.index(index), family, "not configured on this cluster");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(mut spec: ServiceSpec, old: Option<&ServiceSpec>) -> ServiceSpec {
        let mut errors = FieldErrors::default();
        complete(&mut spec, old, &mut errors);
        assert_eq!(errors.to_string(), "[]");
        spec
    }

    fn families(spec: &ServiceSpec) -> (&str, Vec<&str>) {
        let policy = spec.ip_family_policy.as_deref().unwrap_or_default();
        let families = spec.ip_families.iter().map(String::as_str);
        (policy, families.collect())
    }

    #[test]
    fn unset_families_default_to_that_of_the_cluster() {
        let mut spec = completed(ServiceSpec::default(), None);
        assert_eq!(families(&spec), (SINGLE, vec![V4]));
        spec.r#type = "ExternalName".into();
        spec.ip_families.clear();
        spec.ip_family_policy = None;
        assert_eq!(families(&completed(spec, None)), ("", vec![]));
    }

    #[test]
    fn a_headless_service_without_a_selector_may_have_both_families() {
        let mut spec = ServiceSpec {
            cluster_ip: "None".into(),
            cluster_ips: vec!["None".into()],
            ..Default::default()
        };
        let old = completed(spec.clone(), None);
        assert_eq!(families(&old), (DUAL, vec![V4, V6]));
        let mut new = old.clone();
        new.ip_family_policy = Some(SINGLE.into());
        assert_eq!(families(&completed(new, Some(&old))), (SINGLE, vec![V4]));
        spec.selector.insert("app".into(), "web".into());
        assert_eq!(families(&completed(spec, None)), (SINGLE, vec![V4]));
    }
}
