//! The files that volumes have, so that only changes are written.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::runtime::{Volume, VolumeKind};

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
    /// Hashes of the files, by the name of their volume.
    files: HashMap<String, u64>,
}

impl Updates {
    /// Returns when the volumes of a Pod were last compared with their objects by this process.
    pub fn last(&self, uid: &str) -> Option<Instant> {
        self.pods.lock().get(uid).and_then(|pod| pod.at)
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

    /// Records that the volumes of a Pod were compared with their objects.
    pub fn checked(&self, uid: &str, at: Instant) {
        self.pods.lock().entry(uid.to_owned()).or_default().at = Some(at);
    }

    /// Forgets a Pod.
    pub fn forget(&self, uid: &str) {
        self.pods.lock().remove(uid);
    }
}

fn hash(volume: &Volume) -> Option<u64> {
    let VolumeKind::Files { files, .. } = &volume.kind else {
        return None;
    };
    let mut hasher = DefaultHasher::new();
    for file in files {
        (&file.path, &file.content, file.mode).hash(&mut hasher);
    }
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::File;

    #[test]
    fn only_volumes_with_other_files_are_written() {
        let volume = |name: &str, content: &str| Volume {
            name: name.into(),
            kind: VolumeKind::Files {
                files: vec![File {
                    path: "key".into(),
                    content: content.into(),
                    mode: 0o644,
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
