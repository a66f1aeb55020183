//! A row of the table of fields: the support of each runtime.

use setpoint_runtime::Runtime;
use setpoint_runtime::cri::Cri;

/// The support of a runtime for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It has its effect, on the node or in another service.
    Supported,
    /// It has its effect if the software that runs containers can do it; otherwise the container is not started.
    IfPossible,
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
    pub(super) name: &'static str,
    pub(super) is_set: fn(&T) -> bool,
    pub(super) docker: Support,
    docker_without_cgroups: Support,
    pub(super) cri: Support,
    cri_without_cgroups: Support,
    pub(super) process: Support,
    pub(super) root_process: Support,
    pub(super) networked_process: Support,
}

impl<T> Row<T> {
    /// Returns a row with the support of containers of images, and that of processes.
    pub(super) const fn new(
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
    pub(super) const fn supported(name: &'static str) -> Self {
        Self::new(name, |_| false, Support::Supported, Support::Supported)
    }

    /// Returns a row for a field that containers of images support.
    pub(super) const fn docker_only(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self::new(name, is_set, Support::Supported, Support::Ignored)
    }

    /// Returns a row for a field that needs the cgroups of an engine.
    pub(super) const fn cgroups_only(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self {
            docker_without_cgroups: Support::Ignored,
            cri_without_cgroups: Support::Ignored,
            ..Self::docker_only(name, is_set)
        }
    }

    /// Returns a row for a field that a runtime of the CRI supports, and processes by nature.
    pub(super) const fn not_docker(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self::process_only(name, is_set).with_cri(Support::Supported)
    }

    /// Returns the row with this support by runtimes of the CRI.
    pub(super) const fn with_cri(self, support: Support) -> Self {
        Self {
            cri: support,
            cri_without_cgroups: support,
            ..self
        }
    }

    /// Returns a row for a field that needs mounts.
    pub(super) const fn mounts_only(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self {
            root_process: Support::Supported,
            networked_process: Support::Supported,
            ..Self::docker_only(name, is_set)
        }
    }

    /// Returns a row for a field that needs a network of the Pod.
    pub(super) const fn networks_only(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self {
            networked_process: Support::Supported,
            ..Self::docker_only(name, is_set)
        }
    }

    /// Returns a row for a field that processes of the machine satisfy by nature.
    pub(super) const fn process_only(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self::new(name, is_set, Support::Ignored, Support::Supported)
    }

    /// Returns a row for a field that no runtime supports.
    pub(super) const fn ignored(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self::new(name, is_set, Support::Ignored, Support::Ignored)
    }

    /// Returns a row for a field without which a container must not run, and that no runtime supports.
    pub(super) const fn refused(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self::new(name, is_set, Support::Refused, Support::Refused)
    }

    /// Returns the runtimes that obey the field.
    pub(super) fn runtimes(&self) -> Vec<&'static str> {
        let all = [
            ("docker", self.docker),
            ("cri", self.cri),
            ("process", self.networked_process),
        ];
        let obeys = |support| matches!(support, Support::Supported | Support::IfPossible);
        let obeying = all.into_iter().filter(|(_, support)| obeys(*support));
        obeying.map(|(name, _)| name).collect()
    }

    /// Returns the support of a runtime.
    pub(super) const fn support(&self, column: Column) -> Support {
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
