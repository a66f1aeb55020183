//! Remembers the files of volumes and the entries of hosts files, so that only changes are written.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use setpoint_proto::meta::ObjectMeta;
use setpoint_runtime::{Hosts, Volume, VolumeKind};

/// The interval in which a Pod's volumes are compared with their objects, as in the kubelet.
pub const INTERVAL: Duration = Duration::from_secs(60);

/// The files of the volumes of all Pods.
#[derive(Default)]
pub struct Updates {
    pods: Mutex<HashMap<String, Checked>>,
}

#[derive(Default)]
struct Checked {
    at: Option<Instant>,
    /// The hash of the labels and annotations, which volumes may have in files.
    metadata: u64,
    /// Hashes of the files, by the name of their volume.
    files: HashMap<String, u64>,
    /// The entries of the hosts file.
    hosts: Option<Hosts>,
}

impl Updates {
    /// Returns when the volumes of a Pod were last compared with their objects by this process; `None` if the Pod has
    /// other labels or annotations since.
    pub fn last(&self, metadata: &ObjectMeta) -> Option<Instant> {
        let pods = self.pods.lock();
        let checked = pods.get(&metadata.uid);
        let checked = checked.filter(|checked| checked.metadata == hash_metadata(metadata));
        checked.and_then(|checked| checked.at)
    }

    /// Returns those of a Pod's volumes that have other files now.
    pub fn changed(&self, uid: &str, volumes: Vec<Volume>) -> Vec<Volume> {
        let pods = self.pods.lock();
        let known = pods.get(uid).map(|pod| &pod.files);
        let is_same = |volume: &Volume| {
            let before = known.and_then(|known| known.get(&volume.name));
            before.is_some_and(|before| Some(*before) == hash(volume))
        };
        volumes
            .into_iter()
            .filter(|volume| !is_same(volume))
            .collect()
    }

    /// Records the files that volumes have.
    pub fn record(&self, uid: &str, volumes: &[Volume]) {
        let hashes = volumes
            .iter()
            .filter_map(|volume| Some((volume.name.clone(), hash(volume)?)));
        let mut pods = self.pods.lock();
        pods.entry(uid.to_owned()).or_default().files.extend(hashes);
    }

    /// Returns whether the hosts file of a Pod has other entries, as far as this process knows.
    pub fn has_other_hosts(&self, uid: &str, hosts: &Hosts) -> bool {
        let pods = self.pods.lock();
        let known = pods.get(uid).and_then(|pod| pod.hosts.as_ref());
        known != Some(hosts)
    }

    /// Records the entries of the hosts file of a Pod.
    pub fn record_hosts(&self, uid: &str, hosts: Hosts) {
        let mut pods = self.pods.lock();
        pods.entry(uid.to_owned()).or_default().hosts = Some(hosts);
    }

    /// Records that the volumes of a Pod were compared with their objects.
    pub fn checked(&self, metadata: &ObjectMeta, at: Instant) {
        let mut pods = self.pods.lock();
        let checked = pods.entry(metadata.uid.clone()).or_default();
        checked.at = Some(at);
        checked.metadata = hash_metadata(metadata);
    }

    /// Forgets a Pod.
    pub fn forget(&self, uid: &str) {
        self.pods.lock().remove(uid);
    }
}

fn hash_metadata(metadata: &ObjectMeta) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&metadata.labels, &metadata.annotations).hash(&mut hasher);
    hasher.finish()
}

fn hash(volume: &Volume) -> Option<u64> {
    let VolumeKind::Files { files, .. } = &volume.kind else {
        return None;
    };
    let mut hasher = DefaultHasher::new();
    for file in files {
        (&file.path, &file.content, file.mode, file.user).hash(&mut hasher);
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use setpoint_runtime::File;

    #[test]
    fn volumes_of_a_pod_with_other_labels_have_not_been_compared() {
        let (updates, now) = (Updates::default(), Instant::now());
        let mut metadata = ObjectMeta {
            uid: "uid".into(),
            ..ObjectMeta::default()
        };
        assert_eq!(updates.last(&metadata), None);
        updates.checked(&metadata, now);
        assert_eq!(updates.last(&metadata), Some(now));
        metadata.labels.insert("app".into(), "web".into());
        assert_eq!(updates.last(&metadata), None);
    }

    #[test]
    fn only_volumes_with_other_files_are_written() {
        let volume = |name: &str, content: &str| Volume {
            name: name.into(),
            kind: VolumeKind::Files {
                files: vec![File {
                    path: "key".into(),
                    content: content.into(),
                    mode: 0o644,
                    user: None,
                }],
                secret: false,
            },
            group: None,
        };
        let updates = Updates::default();
        let first = vec![volume("a", "1"), volume("b", "1")];
        assert_eq!(updates.changed("uid", first.clone()).len(), 2);
        updates.record("uid", &first);
        let second = vec![volume("a", "1"), volume("b", "2")];
        assert_eq!(updates.changed("uid", second), [volume("b", "2")]);
        updates.forget("uid");
        assert_eq!(updates.changed("uid", first).len(), 2);
    }
}
