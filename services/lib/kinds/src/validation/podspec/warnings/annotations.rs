//! Warnings of annotations that fields have replaced.

use std::collections::BTreeMap;

use setpoint_proto::core::{AppArmorProfile, Container, PodSpec};

use crate::validation::field_path::FieldPath;
use crate::validation::podspec::annotations::{APP_ARMOR, LOCALHOST, SECCOMP, SECCOMP_CONTAINER};
use crate::validation::warnings::Warnings;

/// The annotations without a meaning, and what to set instead.
const WITHOUT_MEANING: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        r#"non-functional in v1.11+; use the "sysctls" field instead"#,
    ),
];
const NO_SECCOMP: &str = r#"non-functional in v1.27+; use the "seccompProfile" field instead"#;
const OLD_APP_ARMOR: &str = r#"deprecated since v1.30; use the "appArmorProfile" field instead"#;

/// The annotations of a Pod or of a template.
pub struct Annotated<'a> {
    pub annotations: &'a BTreeMap<String, String>,
    /// Whether AppArmor profiles are read from them.
    pub has_app_armor: bool,
    pub path: FieldPath<'a>,
}

impl Annotated<'_> {
    /// Warns of annotations without a meaning.
    pub fn warn(&self, warnings: &mut Warnings) {
        for (key, text) in WITHOUT_MEANING {
            if self.annotations.contains_key(key) {
                warnings.about(&self.path.key(key), text);
            }
        }
    }

    /// Warns of the seccomp profile of the Pod.
    pub fn warn_of_pod_profile(&self, spec: &PodSpec, warnings: &mut Warnings) {
        let context = spec.security_context.as_ref();
        let has_field = context.is_some_and(|context| context.seccomp_profile.is_some());
        if !has_field && self.annotations.contains_key(SECCOMP) {
            warnings.about(&self.path.key(SECCOMP), NO_SECCOMP);
        }
    }

    /// Warns of the profiles of a container that differ from those in fields.
    pub fn warn_of_profiles(&self, container: &Container, spec: &PodSpec, warnings: &mut Warnings) {
        let context = container.security_context.as_ref();
        let key = format!("{SECCOMP_CONTAINER}{}", container.name);
        let has_field = context.is_some_and(|context| context.seccomp_profile.is_some());
        if !has_field && self.annotations.contains_key(&key) {
            warnings.about(&self.path.key(&key), NO_SECCOMP);
        }
        let key = format!("{APP_ARMOR}{}", container.name);
        let has_field = context.is_some_and(|context| context.app_armor_profile.is_some());
        if !has_field
            && let Some(annotation) = self.annotations.get(&key)
            && self.has_app_armor
            && !is_profile_of_pod(annotation, spec)
        {
            warnings.about(&self.path.key(&key), OLD_APP_ARMOR);
        }
    }
}

/// Returns whether the profile of an annotation is that of the Pod, which its containers have by default.
fn is_profile_of_pod(annotation: &str, spec: &PodSpec) -> bool {
    let context = spec.security_context.as_ref();
    let of_pod = context.and_then(|context| context.app_armor_profile.as_ref());
    of_pod.is_some() && of_pod == profile(annotation).as_ref()
}

/// Returns the profile of an annotation; `None` if it has none.
fn profile(annotation: &str) -> Option<AppArmorProfile> {
    let (r#type, localhost_profile) = match annotation {
        "unconfined" => ("Unconfined", None),
        "runtime/default" => ("RuntimeDefault", None),
        _ => {
            let name = annotation.strip_prefix(LOCALHOST)?;
            ("Localhost", Some(name.to_owned()))
        }
    };
    Some(AppArmorProfile {
        r#type: r#type.to_owned(),
        localhost_profile,
    })
}
