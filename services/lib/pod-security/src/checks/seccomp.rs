//! Seccomp profiles: `baseline` forbids to turn them off, `restricted` requires them.

use std::collections::BTreeSet;

use setpoint_proto::core::{PodSpec, SeccompProfile};
use setpoint_proto::meta::ObjectMeta;

use super::is_of_windows;
use crate::Violation;
use crate::containers::{Container, all, names};
use crate::wording::{annotation, containers, number, quoted, setters};

/// The annotation with which the profile of a Pod was set before there was a field.
const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The annotation of a container, by its name.
const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const REASON: &str = "seccompProfile";

pub(super) fn annotations(meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let of_containers = all(spec).map(|container| format!("{OF_CONTAINER}{}", container.name));
    let keys = std::iter::once(OF_POD.to_owned()).chain(of_containers);
    let is_allowed = |profile: &str| {
        ["runtime/default", "docker/default"].contains(&profile)
            || profile.starts_with("localhost/")
    };
    let forbidden = keys.filter_map(|key| {
        let profile = meta.annotations.get(&key)?;
        (!is_allowed(profile)).then(|| annotation(&key, profile))
    });
    let forbidden: BTreeSet<_> = forbidden.collect();
    let noun = number("annotation", "annotations", forbidden.len());
    let forbidden: Vec<_> = forbidden.into_iter().collect();
    let detail = || format!("forbidden {noun} {}", forbidden.join(", "));
    (!forbidden.is_empty()).then(|| Violation::new(REASON, detail()))
}

pub(super) fn allowed(_meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let mut types = BTreeSet::new();
    let pod = of_pod(spec).is_some_and(|profile| is_forbidden(profile, &mut types));
    let containers = names(spec, |container| {
        of(container).is_some_and(|profile| is_forbidden(profile, &mut types))
    });
    let setters = setters(pod, &containers)?;
    let types = quoted(types);
    let detail = format!("{setters} must not set securityContext.seccompProfile.type to {types}");
    Some(Violation::new(REASON, detail))
}

pub(super) fn required(meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    if let Some(violation) = allowed(meta, spec) {
        return Some(violation);
    }
    if of_pod(spec).is_some() {
        return None;
    }
    let without = names(spec, |container| of(container).is_none());
    (!without.is_empty()).then(|| {
        let containers = containers(&without);
        let detail = format!(
            "pod or {containers} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\""
        );
        Violation::new(REASON, detail)
    })
}

/// Windows has no seccomp.
pub(super) fn required_unless_windows(meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    match is_of_windows(spec) {
        true => None,
        false => required(meta, spec),
    }
}

fn is_forbidden<'a>(profile: &'a SeccompProfile, types: &mut BTreeSet<&'a str>) -> bool {
    let is_forbidden = !["Localhost", "RuntimeDefault"].contains(&profile.r#type.as_str());
    if is_forbidden {
        types.insert(&profile.r#type);
    }
    is_forbidden
}

fn of_pod(spec: &PodSpec) -> Option<&SeccompProfile> {
    let context = spec.security_context.as_ref();
    context.and_then(|context| context.seccomp_profile.as_ref())
}

fn of<'a>(container: &Container<'a>) -> Option<&'a SeccompProfile> {
    container.setting(|context| context.seccomp_profile.as_ref())
}
