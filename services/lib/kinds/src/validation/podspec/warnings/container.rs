//! Warnings about a container.

use std::collections::BTreeSet;

use setpoint_proto::core::{Container, EnvVar};

use crate::validation::field_path::FieldPath;
use crate::validation::warnings::{Warnings, warn_of_fraction};

/// Warns of amounts of bytes with a fraction, and of variables that hide others.
pub fn warn(container: &Container, path: &FieldPath<'_>, warnings: &mut Warnings) {
    let resources = &container.resources;
    let at = path.field("resources");
    for resource in ["memory", "ephemeral-storage"] {
        for (field, amounts) in [
            ("limits", &resources.limits),
            ("requests", &resources.requests),
        ] {
            let at = at.field(field);
            warn_of_fraction(amounts.get(resource), &at.key(resource), warnings);
        }
    }
    warn_of_hidden_variables(&container.env, &path.field("env"), warnings);
}

/// Warns of variables with the name of one before, unless their value contains it. A client that applies keeps one of
/// each name.
fn warn_of_hidden_variables(env: &[EnvVar], path: &FieldPath<'_>, warnings: &mut Warnings) {
    let mut seen = BTreeSet::new();
    for (index, variable) in env.iter().enumerate() {
        if seen.insert(variable.name.as_str()) {
            continue;
        }
        let reference = format!("$({})", variable.name);
        let extends = variable.value_from.is_none()
            && variable.value != reference
            && variable.value.contains(&reference);
        if !extends {
            let name = &variable.name;
            let text = format!(
                "hides previous definition of {name:?}, which may be dropped when using apply"
            );
            warnings.about(&path.index(index), text);
        }
    }
}
