//! AppArmor profiles: that of the container runtime must not be turned off.

use std::collections::BTreeSet;

use setpoint_proto::core::{AppArmorProfile, PodSpec};
use setpoint_proto::meta::ObjectMeta;

use crate::Violation;
use crate::containers::names;
use crate::wording::{annotation, number, quoted, setters};

/// The annotation of a container, by its name, with which profiles were set before there were fields.
const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";

pub(super) fn profiles(meta: &ObjectMeta, spec: &PodSpec) -> Option<Violation> {
    let mut types = BTreeSet::new();
    let context = spec.security_context.as_ref();
    let of_pod = context.and_then(|context| context.app_armor_profile.as_ref());
    let pod = of_pod.is_some_and(|profile| is_forbidden(profile, &mut types));
    let containers = names(spec, |container| {
        let profile = container.setting(|context| context.app_armor_profile.as_ref());
        profile.is_some_and(|profile| is_forbidden(profile, &mut types))
    });
    let annotations = forbidden_annotations(meta);
    let mut setters: Vec<_> = setters(pod, &containers).into_iter().collect();
    if !annotations.is_empty() {
        setters.push(number("annotation", "annotations", annotations.len()).to_owned());
    }
    let types = types.into_iter().map(str::to_owned);
    let values: Vec<_> = types.chain(annotations).collect();
    let reason = number(
        "forbidden AppArmor profile",
        "forbidden AppArmor profiles",
        values.len(),
    );
    let detail = format!(
        "{} must not set AppArmor profile type to {}",
        setters.join(" and "),
        quoted(values)
    );
    (!setters.is_empty()).then(|| Violation::new(reason, detail))
}

fn is_forbidden<'a>(profile: &'a AppArmorProfile, types: &mut BTreeSet<&'a str>) -> bool {
    let is_forbidden = !["RuntimeDefault", "Localhost"].contains(&profile.r#type.as_str());
    if is_forbidden {
        types.insert(&profile.r#type);
    }
    is_forbidden
}

/// Returns the annotations with a forbidden profile, in the order of their texts.
fn forbidden_annotations(meta: &ObjectMeta) -> BTreeSet<String> {
    let of_containers = meta.annotations.iter();
    let of_containers = of_containers.filter(|(key, _)| key.starts_with(ANNOTATION));
    let is_allowed = |profile: &str| {
        ["", "runtime/default"].contains(&profile) || profile.starts_with("localhost/")
    };
    let forbidden = of_containers.filter(|(_, profile)| !is_allowed(profile));
    forbidden
        .map(|(key, profile)| annotation(key, profile))
        .collect()
}
