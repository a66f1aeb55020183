//! The user of containers: not root, unless the users of the Pod are its own.

use setpoint_proto::core::PodSpec;
use setpoint_proto::meta::ObjectMeta;

use super::has_own_users;
use crate::Violation;
use crate::containers::names;
use crate::wording::{containers, setters};

pub(super) fn non_root(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let violation = |detail| Violation::new("runAsNonRoot != true", detail);
    let context = spec.security_context.as_ref();
    let of_pod = context.and_then(|context| context.run_as_non_root);
    let with = |wanted: Option<bool>| {
        names(spec, |container| {
            container.setting(|context| context.run_as_non_root) == wanted
        })
    };
    if let Some(setters) = setters(of_pod == Some(false), &with(Some(false))) {
        let detail = format!("{setters} must not set securityContext.runAsNonRoot=false");
        return Some(violation(detail));
    }
    let unset = with(None);
    (of_pod != Some(true) && !unset.is_empty()).then(|| {
        let containers = containers(&unset);
        violation(format!(
            "pod or {containers} must set securityContext.runAsNonRoot=true"
        ))
    })
}

pub(super) fn non_root_of_host_users(meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    match has_own_users(spec) {
        true => None,
        false => non_root(meta, spec),
    }
}

pub(super) fn not_zero(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let context = spec.security_context.as_ref();
    let of_pod = context.and_then(|context| context.run_as_user);
    let of_containers = names(spec, |container| {
        container.setting(|context| context.run_as_user) == Some(0)
    });
    let setters = setters(of_pod == Some(0), &of_containers)?;
    let detail = format!("{setters} must not set runAsUser=0");
    Some(Violation::new("runAsUser=0", detail))
}

pub(super) fn not_zero_of_host_users(meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    match has_own_users(spec) {
        true => None,
        false => not_zero(meta, spec),
    }
}
