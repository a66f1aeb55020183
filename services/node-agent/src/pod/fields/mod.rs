//! The support matrix of a Pod's fields: how each runtime treats each of them.
//!
//! Every field of a Pod's spec has a row, as has every value that is treated differently. A field that is set without
//! effect is named in an Event of the node. A field is refused, so that the container does not start, if the container would be
//! less confined than requested or would lack something that it cannot do without. Simulated nodes run nothing and
//! report nothing.

mod container;
mod matches;
mod pod;
mod security;

use setpoint_proto::core::{Container, PodSpec};
use setpoint_runtime::Runtime;
use setpoint_runtime::cri::Cri;

use crate::pod::container_config::denied_capabilities;
use crate::pod::ephemeral;

pub use self::matches::Field;
use self::matches::Matches;

/// The support of a runtime for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It has its effect, on the node or in another service.
    Supported,
    /// It has no effect; an Event of the node names it.
    Ignored,
    /// The container is not started.
    Refused,
}

/// The runtimes that run programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Containers of a Docker engine.
    Docker,
    /// Containers of a Docker engine whose cgroups the agent does not manage.
    DockerWithoutCgroups,
    /// Containers of a runtime that serves the CRI.
    Cri,
    /// Such containers, of a runtime whose cgroups systemd manages.
    CriWithoutCgroups,
    /// Processes that share the machine's mounts.
    Process,
    /// Processes with mounts of their own, which an agent with root makes.
    RootProcess,
    /// Such processes in networks of their own.
    NetworkedProcess,
}

impl Column {
    /// Returns the column of a runtime; `None` if it runs no programs.
    pub fn of<R: Runtime>(runtime: &R) -> Option<Self> {
        match (R::RUNS_IMAGES, R::RUNS_COMMANDS) {
            (true, _) if R::NAME == Cri::NAME && runtime.bounds_pods() => Some(Self::Cri),
            (true, _) if R::NAME == Cri::NAME => Some(Self::CriWithoutCgroups),
            (true, _) if runtime.bounds_pods() => Some(Self::Docker),
            (true, _) => Some(Self::DockerWithoutCgroups),
            (false, true) if runtime.has_pod_networks() => Some(Self::NetworkedProcess),
            (false, true) if runtime.mounts_volumes() => Some(Self::RootProcess),
            (false, true) => Some(Self::Process),
            (false, false) => None,
        }
    }
}

/// The support for a field of `T`, or for one of its values.
pub struct Row<T: 'static> {
    /// The JSON name; a specific value follows in brackets: `seccompProfile[Localhost]`.
    name: &'static str,
    is_set: fn(&T) -> bool,
    docker: Support,
    docker_without_cgroups: Support,
    cri: Support,
    cri_without_cgroups: Support,
    process: Support,
    root_process: Support,
    networked_process: Support,
}

impl<T> Row<T> {
    const fn new(
        name: &'static str,
        is_set: fn(&T) -> bool,
        docker: Support,
        process: Support,
    ) -> Self {
        Self {
            name,
            is_set,
            docker,
            docker_without_cgroups: docker,
            cri: docker,
            cri_without_cgroups: docker,
            process,
            root_process: process,
            networked_process: process,
        }
    }

    /// Returns a row for a field that every runtime supports or that does not concern the node.
    const fn supported(name: &'static str) -> Self {
        Self::new(name, |_| false, Support::Supported, Support::Supported)
    }

    /// Returns a row for a field that containers of images support.
    const fn docker_only(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self::new(name, is_set, Support::Supported, Support::Ignored)
    }

    /// Returns a row for a field that needs the cgroups of an engine.
    const fn cgroups_only(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self {
            docker_without_cgroups: Support::Ignored,
            cri_without_cgroups: Support::Ignored,
            ..Self::docker_only(name, is_set)
        }
    }

    /// Returns a row for a field that a runtime of the CRI supports, and processes by nature.
    const fn not_docker(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self {
            cri: Support::Supported,
            cri_without_cgroups: Support::Supported,
            ..Self::process_only(name, is_set)
        }
    }

    /// Returns a row for a field that only a Docker engine supports.
    const fn engine_only(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self {
            cri: Support::Ignored,
            cri_without_cgroups: Support::Ignored,
            ..Self::docker_only(name, is_set)
        }
    }

    /// Returns a row for a field that needs mounts.
    const fn mounts_only(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self {
            root_process: Support::Supported,
            networked_process: Support::Supported,
            ..Self::docker_only(name, is_set)
        }
    }

    /// Returns a row for a field that needs a network of the Pod.
    const fn networks_only(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self {
            networked_process: Support::Supported,
            ..Self::docker_only(name, is_set)
        }
    }

    /// Returns a row for a field that processes of the machine satisfy by nature.
    const fn process_only(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self::new(name, is_set, Support::Ignored, Support::Supported)
    }

    const fn ignored(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self::new(name, is_set, Support::Ignored, Support::Ignored)
    }

    const fn refused(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self::new(name, is_set, Support::Refused, Support::Refused)
    }

    /// Returns the runtimes that obey the field.
    fn runtimes(&self) -> Vec<&'static str> {
        let all = [
            ("docker", self.docker),
            ("cri", self.cri),
            ("process", self.networked_process),
        ];
        let obeying = all
            .iter()
            .filter(|(_, support)| *support == Support::Supported);
        obeying.map(|(name, _)| *name).collect()
    }

    const fn support(&self, column: Column) -> Support {
        match column {
            Column::Docker => self.docker,
            Column::DockerWithoutCgroups => self.docker_without_cgroups,
            Column::Cri => self.cri,
            Column::CriWithoutCgroups => self.cri_without_cgroups,
            Column::Process => self.process,
            Column::RootProcess => self.root_process,
            Column::NetworkedProcess => self.networked_process,
        }
    }
}

/// Returns the fields that are set and have no effect.
pub fn ignored(spec: &PodSpec, column: Column) -> Vec<Field> {
    let mut matches = Matches::of(column, Support::Ignored);
    matches.pod(spec);
    for (kind, container) in all_containers(spec) {
        let path = format!("spec.{kind}{{{}}}.", container.name);
        matches.container(&path, container);
        for name in denied_capabilities(container) {
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
