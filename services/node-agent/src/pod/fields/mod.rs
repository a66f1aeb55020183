//! The support matrix of a Pod's fields: how each runtime treats each of them.
//!
//! Every field of a Pod's spec has a row, as has every value that is treated differently. A field that is set without
//! effect is named in an Event of the node. A field is refused, so that the container does not start, if the container
//! would be less confined than requested or would lack something that it cannot do without. Simulated nodes run nothing
//! and report nothing.

mod container;
mod matches;
mod pod;
mod row;
mod security;

use setpoint_proto::core::{Container, PodSpec};

pub use self::matches::Field;
use self::matches::Matches;
use self::row::Row;
pub use self::row::{Column, Support};
use crate::pod::container_config::{denied_capabilities, is_privileged};
use crate::pod::ephemeral;

/// Returns the fields that are set and have no effect.
pub fn ignored(spec: &PodSpec, column: Column) -> Vec<Field> {
    let mut matches = Matches::of(column, Support::Ignored);
    matches.pod(spec);
    for (kind, container) in all_containers(spec) {
        let path = format!("spec.{kind}{{{}}}.", container.name);
        matches.container(&path, container);
        // A privileged container has all of them.
        let has_all = has_privileges(column) && is_privileged(container);
        for name in denied_capabilities(container)
            .into_iter()
            .filter(|_| !has_all)
        {
            let path = format!("{path}securityContext.capabilities.add[{name}]");
            matches.add(path);
        }
    }
    matches.found
}

/// Returns the fields of an ephemeral container that are set and have no effect.
pub fn ignored_of_ephemeral(spec: &PodSpec, name: &str, column: Column) -> Vec<Field> {
    let mut matches = Matches::of(column, Support::Ignored);
    if let Some(container) = ephemeral::named(spec, name).map(ephemeral::container) {
        let path = format!("spec.ephemeralContainers{{{name}}}.");
        matches.container(&path, &container);
    }
    matches.found
}

/// Returns the path of the first field that keeps a container from starting.
pub fn refused(spec: &PodSpec, name: &str, column: Column) -> Option<String> {
    let mut matches = Matches::of(column, Support::Refused);
    matches.pod(spec);
    let named = all_containers(spec).filter(|(_, container)| container.name == name);
    for (kind, container) in named {
        let path = format!("spec.{kind}{{{name}}}.");
        matches.container(&path, container);
        matches.tracing(&path, spec, container);
    }
    if let Some(container) = ephemeral::named(spec, name).map(ephemeral::container) {
        let path = format!("spec.ephemeralContainers{{{name}}}.");
        matches.container(&path, &container);
        matches.tracing(&path, spec, &container);
    }
    matches.found.into_iter().next().map(|field| field.path)
}

/// Returns whether containers can be privileged.
const fn has_privileges(column: Column) -> bool {
    matches!(column, Column::Cri | Column::CriWithoutCgroups)
}

fn all_containers(spec: &PodSpec) -> impl Iterator<Item = (&'static str, &Container)> {
    let init = spec
        .init_containers
        .iter()
        .map(|container| ("initContainers", container));
    let main = spec
        .containers
        .iter()
        .map(|container| ("containers", container));
    init.chain(main)
}

#[cfg(test)]
mod examples;
#[cfg(test)]
mod tests;
