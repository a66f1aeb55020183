//! Measures the space that Pods hold.
//!
//! The engine knows the sizes of writable layers. Logs and volumes are files of its machine, which this agent walks
//! through itself if it sees them, or its binary in the pause container of their Pod.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bollard::errors::Error as BollardError;
use bollard::models::Volume;
use bollard::query_parameters::{InspectContainerOptionsBuilder, ListVolumesOptionsBuilder};
use futures::StreamExt as _;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::warn;

use super::identity::{CLUSTER, NODE, UID, filter};
use super::{Shared, volume};
use crate::{Container, ContainerId, ContainerSpace, DiskUsage, Error, Space};

/// Maximum number of concurrent requests. The engine walks through files for each of them.
const CONCURRENCY: usize = 2;
/// The time within which a container or the volumes of a Pod must be measured.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The name and the directory of each volume of a Pod.
type Folders = Vec<(String, PathBuf)>;

impl Shared {
    /// Returns what the Pods with these uids hold, except what cannot be measured.
    pub(super) async fn disk_usage(&self, pods: HashSet<String>) -> DiskUsage {
        let containers = self.table.lock().containers().into_iter();
        let ours = containers
            .filter(|one| pods.contains(&one.id.uid) && !one.runtime_id.is_empty())
            .map(|container| self.container_space(container));
        let measured = futures::stream::iter(ours).buffer_unordered(CONCURRENCY);
        DiskUsage {
            containers: measured.filter_map(futures::future::ready).collect().await,
            volumes: self.volumes_of(&pods).await.unwrap_or_else(|error| {
                warn!(%error, "the container engine does not list its volumes");
                HashMap::new()
            }),
        }
    }

    /// Measures the writable layer and the log of a container.
    async fn container_space(&self, container: Container) -> Option<(ContainerId, ContainerSpace)> {
        let with_size = InspectContainerOptionsBuilder::default().size(true).build();
        let client = &self.engine.client;
        let inspected = client.inspect_container(&container.runtime_id, Some(with_size));
        let inspected = timeout(TIMEOUT, inspected).await.ok()?.ok()?;
        let log = inspected.log_path.unwrap_or_default();
        let space = ContainerSpace {
            layer: inspected.size_rw.and_then(|bytes| bytes.try_into().ok()),
            log: spawn_blocking(move || log_space(&log)).await.ok()?,
        };
        Some((container.id, space))
    }

    async fn volumes_of(
        &self,
        pods: &HashSet<String>,
    ) -> Result<HashMap<String, BTreeMap<String, Space>>, BollardError> {
        let labels = [(CLUSTER, self.engine.cluster.as_str()), (NODE, &self.node)];
        let wanted = ListVolumesOptionsBuilder::default()
            .filters(&filter(&labels))
            .build();
        let listed = self.engine.client.list_volumes(Some(wanted)).await?.volumes;
        let mut found = HashMap::new();
        for (uid, folders) in by_pod(listed.unwrap_or_default(), pods) {
            match timeout(TIMEOUT, self.measure(&uid, folders)).await {
                Ok(Ok(spaces)) => drop(found.insert(uid, spaces)),
                Ok(Err(error)) => warn!(uid, %error, "the volumes of the Pod cannot be measured"),
                Err(_) => warn!(uid, "the volumes of the Pod cannot be measured in time"),
            }
        }
        Ok(found)
    }

    async fn measure(&self, uid: &str, folders: Folders) -> Result<BTreeMap<String, Space>, Error> {
        let Some(program) = &self.engine.helper else {
            let spaces = spawn_blocking(move || {
                let space = |(name, folder): (_, PathBuf)| Some((name, Space::of(&folder).ok()?));
                folders.into_iter().filter_map(space).collect()
            });
            return Ok(spaces.await.unwrap_or_default());
        };
        let names: Vec<_> = folders.into_iter().map(|(name, _)| name).collect();
        let paths: Vec<_> = names.iter().map(|name| volume::path(name)).collect();
        let mut arguments = vec!["measure"];
        arguments.extend(paths.iter().map(String::as_str));
        let said = self.ask_within(program, uid, &arguments).await?;
        let spaces = names.into_iter().zip(said.lines());
        Ok(spaces
            .filter_map(|(name, line)| Some((name, parse(line)?)))
            .collect())
    }
}

/// Returns the directories of the volumes of these Pods.
fn by_pod(volumes: Vec<Volume>, pods: &HashSet<String>) -> HashMap<String, Folders> {
    let mut found: HashMap<String, Folders> = HashMap::new();
    for volume in volumes {
        let uid = volume.labels.get(UID).filter(|uid| pods.contains(*uid));
        let own = uid.and_then(|uid| {
            let name = volume.name.strip_prefix(&volume::name(uid, ""))?;
            Some((uid.clone(), name.to_owned()))
        });
        if let Some((uid, name)) = own {
            let folder = volume.mountpoint.into();
            found.entry(uid).or_default().push((name, folder));
        }
    }
    found
}

/// Returns the space of a log and of the older files that it was rotated to; none if this agent does not see them.
fn log_space(path: &str) -> Option<Space> {
    let older = (1..).map(|number| format!("{path}.{number}"));
    let files = std::iter::once(path.to_owned()).chain(older);
    let spaces = files.map_while(|file| Space::of_file(Path::new(&file)).ok());
    spaces.reduce(Space::plus)
}

/// Prints the bytes and the inodes of each directory, a line each, or `-` for one that cannot be measured: the
/// subcommand `measure <folder>…`.
pub fn measure<'a>(folders: impl Iterator<Item = &'a Path>) -> ExitCode {
    for folder in folders {
        match Space::of(folder) {
            Ok(Space { bytes, inodes }) => println!("{bytes} {inodes}"),
            Err(_) => println!("-"),
        }
    }
    ExitCode::SUCCESS
}

fn parse(line: &str) -> Option<Space> {
    let (bytes, inodes) = line.trim().split_once(' ')?;
    Some(Space {
        bytes: bytes.parse().ok()?,
        inodes: inodes.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_belongs_to_the_pod_of_its_label() {
        let volume = |uid: &str, name: &str| Volume {
            name: name.into(),
            mountpoint: format!("/volumes/{name}/_data"),
            labels: HashMap::from([(UID.to_owned(), uid.to_owned())]),
            ..Volume::default()
        };
        let listed = vec![
            volume("a", "k8s_a_cache"),
            volume("b", "k8s_b_cache"),
            volume("a", "other"),
        ];
        let found = by_pod(listed, &HashSet::from(["a".to_owned()]));
        let expected = vec![("cache".to_owned(), "/volumes/k8s_a_cache/_data".into())];
        assert_eq!(found, HashMap::from([("a".to_owned(), expected)]));
    }

    #[test]
    fn a_log_has_the_size_of_all_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("x-json.log").display().to_string();
        assert_eq!(log_space(&log), None);
        std::fs::write(&log, vec![7; 10_000]).unwrap();
        std::fs::write(format!("{log}.1"), vec![7; 10_000]).unwrap();
        let space = log_space(&log).unwrap();
        assert!(space.bytes >= 20_000 && space.inodes == 2, "{space:?}");
    }

    #[test]
    fn a_line_that_is_no_size_is_ignored() {
        let space = Space {
            bytes: 4096,
            inodes: 1,
        };
        assert_eq!(parse("4096 1\r"), Some(space));
        assert_eq!(parse("-"), None);
    }
}
