//! The configuration of an administrator: `PodSecurityConfiguration` of `pod-security.admission.config.k8s.io`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use setpoint_model::names;

use crate::policy::Mode;
use crate::{Level, Policy, Version};

/// The versions of the file, which have the same fields.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];
const GROUP: &str = "pod-security.admission.config.k8s.io";

/// The configuration: the policy of namespaces without labels, and what no policy applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// The policy that labels override.
    pub defaults: Policy,
    /// Requests and Pods that no policy applies to.
    pub exemptions: Exemptions,
}

/// Users, namespaces and runtime classes that no policy applies to.
///
/// A controller that creates Pods should not be exempt: everybody who may write its objects would be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exemptions {
    /// The names of users.
    pub usernames: BTreeSet<String>,
    /// The names of namespaces.
    pub namespaces: BTreeSet<String>,
    /// The names of runtime classes of Pods.
    pub runtime_classes: BTreeSet<String>,
}

impl Default for Configuration {
    /// Everything is allowed where labels do not say otherwise, as upstream.
    fn default() -> Self {
        Self {
            defaults: Policy::PRIVILEGED,
            exemptions: Exemptions::default(),
        }
    }
}

impl Configuration {
    /// Reads the document of a file.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with the path of its field.
    pub fn read(document: &Value) -> Result<Self, String> {
        let mut configuration = Self::default();
        let mut errors = Vec::new();
        let Value::Object(fields) = document else {
            return Err("expected PodSecurityConfiguration".to_owned());
        };
        check_kind(fields)?;
        for (name, value) in fields {
            match name.as_str() {
                "apiVersion" | "kind" => {}
                "defaults" => configuration.read_defaults(value, &mut errors),
                "exemptions" => configuration.exemptions.read(value, &mut errors),
                _ => errors.push(unknown(name)),
            }
        }
        match errors.as_slice() {
            [] => Ok(configuration),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }

    fn read_defaults(&mut self, value: &Value, errors: &mut Vec<String>) {
        for (name, value) in object("defaults", value, errors) {
            let path = format!("defaults.{name}");
            let of_name = |mode: &Mode| mode.name() == name.trim_end_matches("-version");
            let Some(mode) = Mode::ALL.into_iter().find(of_name) else {
                errors.push(unknown(&path));
                continue;
            };
            let Some(text) = string(&path, value, errors).filter(|text| !text.is_empty()) else {
                continue;
            };
            let of_mode = self.defaults.of_mut(mode);
            let read = match name.ends_with("-version") {
                true => Version::parse(text).map(|version| of_mode.version = version),
                false => Level::parse(text).map(|level| of_mode.level = level),
            };
            if let Err(requirement) = read {
                errors.push(invalid(&path, value, requirement));
            }
        }
    }
}

impl Exemptions {
    fn read(&mut self, value: &Value, errors: &mut Vec<String>) {
        for (name, value) in object("exemptions", value, errors) {
            let path = format!("exemptions.{name}");
            let (set, check): (_, fn(&str) -> Vec<String>) = match name.as_str() {
                "usernames" => (&mut self.usernames, check_username),
                "namespaces" => (&mut self.namespaces, names::validate_dns_label),
                "runtimeClasses" => (&mut self.runtime_classes, names::validate_dns_subdomain),
                _ => {
                    errors.push(unknown(&path));
                    continue;
                }
            };
            read_names(&path, value, set, check, errors);
        }
    }
}

fn read_names(
    path: &str,
    value: &Value,
    set: &mut BTreeSet<String>,
    check: fn(&str) -> Vec<String>,
    errors: &mut Vec<String>,
) {
    let Some(entries) = value.as_array() else {
        if !value.is_null() {
            errors.push(invalid(path, value, "must be a list of strings"));
        }
        return;
    };
    for (at, value) in entries.iter().enumerate() {
        let path = format!("{path}[{at}]");
        let Some(name) = string(&path, value, errors) else {
            continue;
        };
        let wrong = check(name);
        if !wrong.is_empty() {
            errors.push(invalid(&path, value, &wrong.join(", ")));
        } else if !set.insert(name.to_owned()) {
            errors.push(format!("{path}: Duplicate value: {value}"));
        }
    }
}

fn check_username(name: &str) -> Vec<String> {
    match name {
        "" => vec!["username must not be empty".to_owned()],
        _ => Vec::new(),
    }
}

fn check_kind(fields: &Map<String, Value>) -> Result<(), String> {
    let field = |name: &str| fields.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (field("apiVersion"), field("kind"));
    let of_group = version.strip_prefix(GROUP);
    let known = of_group.and_then(|rest| rest.strip_prefix('/'));
    let is_known = known.is_some_and(|version| VERSIONS.contains(&version));
    match is_known && kind == "PodSecurityConfiguration" {
        true => Ok(()),
        false => Err(format!(
            "no kind {kind:?} is registered for version {version:?}: kind must be PodSecurityConfiguration and \
             apiVersion {GROUP}/v1"
        )),
    }
}

/// Returns the fields of an object; none if it is null or something else, which is an error.
fn object<'v>(
    path: &str,
    value: &'v Value,
    errors: &mut Vec<String>,
) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
    if !value.is_object() && !value.is_null() {
        errors.push(invalid(path, value, "must be an object"));
    }
    value.as_object().into_iter().flatten()
}

fn string<'v>(path: &str, value: &'v Value, errors: &mut Vec<String>) -> Option<&'v str> {
    let text = value.as_str();
    if text.is_none() {
        errors.push(invalid(path, value, "must be a string"));
    }
    text
}

fn invalid(path: &str, value: &Value, requirement: &str) -> String {
    format!("{path}: Invalid value: {value}: {requirement}")
}

fn unknown(path: &str) -> String {
    format!("unknown field {path:?}")
}
