//! The support matrix of a Pod's fields: how each runtime treats each of them.
//!
//! Every field of a Pod's spec has a row, as has every value that is treated differently. A field that is set without
//! effect is named in an Event. A field is refused, so that the container does not start, if the container would be
//! less confined than requested or would lack something that it cannot do without. Simulated nodes run nothing and
//! report nothing.

mod container;
mod pod;
mod security;

use setpoint_proto::core::{Container, PodSpec};
use setpoint_runtime::Runtime;
use setpoint_runtime::cri::Cri;

use crate::pod::container_config::{denied_capabilities, requests};
use crate::pod::ephemeral;

/// The capability to trace processes.
const TRACING: &str = "SYS_PTRACE";

/// The support of a runtime for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It has its effect, on the node or in another service.
    Supported,
    /// It has no effect; an Event names it.
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

/// Returns the paths of the fields that are set and have no effect.
pub fn ignored(spec: &PodSpec, column: Column) -> Vec<String> {
    let mut matches = Matches::of(column, Support::Ignored);
    matches.pod(spec);
    for (kind, container) in all_containers(spec) {
        let path = format!("spec.{kind}{{{}}}.", container.name);
        matches.container(&path, container);
        for name in denied_capabilities(container) {
            let path = format!("{path}securityContext.capabilities.add[{name}]");
            matches.found.push(path);
        }
    }
    matches.found
}

/// Returns the paths of the fields of an ephemeral container that are set and have no effect.
pub fn ignored_of_ephemeral(spec: &PodSpec, name: &str, column: Column) -> Vec<String> {
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
    matches.found.into_iter().next()
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

/// Collects the paths of the fields that are set and have a given support.
struct Matches {
    column: Column,
    wanted: Support,
    found: Vec<String>,
}

impl Matches {
    const fn of(column: Column, wanted: Support) -> Self {
        Self {
            column,
            wanted,
            found: Vec::new(),
        }
    }

    fn rows<T>(&mut self, path: &str, rows: &[Row<T>], object: &T) {
        for row in rows {
            if row.support(self.column) == self.wanted && (row.is_set)(object) {
                self.found.push(format!("{path}{}", row.name));
            }
        }
    }

    fn pod(&mut self, spec: &PodSpec) {
        self.rows("spec.", pod::POD, spec);
        if let Some(context) = &spec.security_context {
            self.rows("spec.securityContext.", security::POD, context);
            self.rows("spec.securityContext.", &security::shared(), context);
        }
    }

    /// Matches the capability to trace processes, if those of the Pod, its pause container included, are shared: with
    /// it, a container would act as the agent does in the pause container.
    fn tracing(&mut self, path: &str, spec: &PodSpec, container: &Container) {
        let has_engine = matches!(self.column, Column::Docker | Column::DockerWithoutCgroups);
        let shares = spec.share_process_namespace == Some(true);
        if has_engine && shares && requests(container, TRACING) {
            let path = format!("{path}securityContext.capabilities.add[{TRACING}]");
            self.found
                .push(format!("{path} with spec.shareProcessNamespace"));
        }
    }

    fn container(&mut self, path: &str, container: &Container) {
        self.rows(path, container::CONTAINER, container);
        if let Some(context) = &container.security_context {
            let path = format!("{path}securityContext.");
            self.rows(&path, security::CONTAINER, context);
            self.rows(&path, &security::shared(), context);
        }
        // If no volumes are mounted at all, the row `volumeMounts` says so.
        let mounts = match self.column {
            Column::Process => &[],
            _ => container.volume_mounts.as_slice(),
        };
        for mount in mounts {
            let path = format!("{path}volumeMounts{{{}}}.", mount.mount_path);
            self.rows(&path, container::MOUNT, mount);
        }
    }
}

#[cfg(test)]
mod examples;
#[cfg(test)]
mod tests;
