//! The fields of one Pod that are set and have a given support.

use setpoint_proto::core::{Container, PodSpec};

use super::{Column, Row, Support, container, pod, security};
use crate::pod::container_config::requests;

/// The capability to trace processes.
const TRACING: &str = "SYS_PTRACE";

/// A field that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The path of the field, with names of containers: `spec.containers{web}.stdin`.
    pub path: String,
    /// The runtimes that obey the field.
    pub runtimes: Vec<&'static str>,
}

impl Field {
    /// Returns the path of the field in any Pod: `spec.containers[].stdin`.
    pub fn of_any_pod(&self) -> String {
        let mut parts = self.path.split('{');
        let mut path = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            path.push_str("[]");
            path.push_str(part.split_once('}').map_or(part, |(_, rest)| rest));
        }
        path
    }
}

/// Collects the fields that are set and have a given support.
pub(super) struct Matches {
    column: Column,
    wanted: Support,
    pub(super) found: Vec<Field>,
}

impl Matches {
    pub(super) const fn of(column: Column, wanted: Support) -> Self {
        Self {
            column,
            wanted,
            found: Vec::new(),
        }
    }

    /// Adds what has no row: no runtime obeys it.
    pub(super) fn add(&mut self, path: String) {
        let runtimes = Vec::new();
        self.found.push(Field { path, runtimes });
    }

    fn rows<T>(&mut self, path: &str, rows: &[Row<T>], object: &T) {
        for row in rows {
            if row.support(self.column) == self.wanted && (row.is_set)(object) {
                let path = format!("{path}{}", row.name);
                let runtimes = row.runtimes();
                self.found.push(Field { path, runtimes });
            }
        }
    }

    pub(super) fn pod(&mut self, spec: &PodSpec) {
        self.rows("spec.", pod::POD, spec);
        if let Some(context) = &spec.security_context {
            self.rows("spec.securityContext.", security::POD, context);
            self.rows("spec.securityContext.", &security::shared(), context);
        }
    }

    /// Matches the capability to trace processes, if those of the Pod, its pause container included, are shared: with
    /// it, a container would act as the agent does in the pause container. With the processes of a node, it would be
    /// root there.
    pub(super) fn tracing(&mut self, path: &str, spec: &PodSpec, container: &Container) {
        let (shares, field) = match self.column {
            Column::Docker | Column::DockerWithoutCgroups => (
                spec.share_process_namespace == Some(true),
                "spec.shareProcessNamespace",
            ),
            Column::Cri | Column::CriWithoutCgroups => (spec.host_pid, "spec.hostPID"),
            _ => return,
        };
        if shares && requests(container, TRACING) {
            let path = format!("{path}securityContext.capabilities.add[{TRACING}]");
            self.add(format!("{path} with {field}"));
        }
    }

    pub(super) fn container(&mut self, path: &str, container: &Container) {
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
