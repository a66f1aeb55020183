//! The one table of a Pod's fields: which of them each runtime obeys.
//!
//! Every field of a Pod's spec has a row, and values that are treated otherwise a row of their own. What is set and not
//! obeyed is told in one Event, or keeps the container from starting where it would be less confined than it asks to be,
//! or lack what it cannot do without. Simulated nodes run nothing, so they tell nothing either.

mod container;
mod pod;

use setpoint_proto::core::{Container, PodSpec};

use crate::request::denied_capabilities;
use crate::runtime::Runtime;

/// What a runtime makes of a field that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It has its effect, here or in another service.
    Obeyed,
    /// It has none; an Event names it.
    Ignored,
    /// The container does not start.
    Refused,
}

/// The runtimes that run something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Containers of an engine.
    Docker,
    /// Processes.
    Process,
}

impl Column {
    /// The column of a runtime; `None` where nothing is run.
    pub const fn of<R: Runtime>() -> Option<Self> {
        match (R::RUNS_IMAGES, R::RUNS_COMMANDS) {
            (true, _) => Some(Self::Docker),
            (false, true) => Some(Self::Process),
            (false, false) => None,
        }
    }
}

/// A field of `T`, or one of its values, and what each runtime makes of it.
pub struct Row<T: 'static> {
    /// As in JSON; a value that is meant follows in brackets: `seccompProfile[Localhost]`.
    name: &'static str,
    is_set: fn(&T) -> bool,
    docker: Support,
    process: Support,
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
            process,
        }
    }

    /// A field that every runtime obeys, or that is none of the node's business.
    const fn obeyed(name: &'static str) -> Self {
        Self::new(name, |_| false, Support::Obeyed, Support::Obeyed)
    }

    /// A field that only an engine can obey.
    const fn by_engine(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self::new(name, is_set, Support::Obeyed, Support::Ignored)
    }

    /// A field that processes of the machine have by nature.
    const fn by_processes(name: &'static str, is_set: fn(&T) -> bool) -> Self {
        Self::new(name, is_set, Support::Ignored, Support::Obeyed)
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
            Column::Process => self.process,
        }
    }
}

/// The fields of a Pod that are set and have no effect, by their paths.
pub fn ignored(spec: &PodSpec, column: Column) -> Vec<String> {
    let mut search = Search::of(column, Support::Ignored);
    search.pod(spec);
    for (kind, container) in all_containers(spec) {
        let path = format!("spec.{kind}{{{}}}.", container.name);
        search.container(&path, container, kind);
        for name in denied_capabilities(container) {
            let path = format!("{path}securityContext.capabilities.add[{name}]");
            search.found.push(path);
        }
    }
    search.found
}

/// The first field that keeps a container from starting, by its path.
pub fn refused(spec: &PodSpec, name: &str, column: Column) -> Option<String> {
    let mut search = Search::of(column, Support::Refused);
    search.pod(spec);
    let named = all_containers(spec).filter(|(_, container)| container.name == name);
    for (kind, container) in named {
        search.container(&format!("spec.{kind}{{{name}}}."), container, kind);
    }
    search.found.into_iter().next()
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

/// Collects the paths of fields that are set and treated in one way.
struct Search {
    column: Column,
    wanted: Support,
    found: Vec<String>,
}

impl Search {
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
        if let Some(security) = &spec.security_context {
            self.rows("spec.securityContext.", pod::SECURITY, security);
        }
    }

    fn container(&mut self, path: &str, container: &Container, kind: &str) {
        self.rows(path, container::CONTAINER, container);
        if kind == "containers" {
            self.rows(path, container::MAIN, container);
        }
        if let Some(security) = &container.security_context {
            let path = format!("{path}securityContext.");
            self.rows(&path, container::SECURITY, security);
        }
        // Without an engine no volume is mounted at all.
        let mounts = match self.column {
            Column::Docker => container.volume_mounts.as_slice(),
            Column::Process => &[],
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
