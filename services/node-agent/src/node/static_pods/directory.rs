//! The manifests in a directory, as they were read last.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use setpoint_model::Key;
use setpoint_model::hash::fnv128a;
use setpoint_proto::core::Pod;

use super::manifest;

/// The largest size of a manifest in bytes, as in the kubelet.
const LARGEST: u64 = 10 << 20;

/// The manifests of one node.
pub struct Directory {
    path: PathBuf,
    node: String,
    files: BTreeMap<PathBuf, Known>,
    /// The problem of each file that was returned last.
    told: BTreeMap<PathBuf, String>,
}

/// A file as it was read last.
#[derive(Default)]
struct Known {
    /// The hash of the text that was parsed last.
    text: Option<u128>,
    /// The Pod of the last text that was a valid manifest.
    pod: Option<Pod>,
    /// The reason for which the text is no manifest, or the parts of it that are ignored.
    problem: Option<String>,
}

/// The content of a directory.
#[derive(Debug)]
pub struct Reading {
    /// The Pods, by name.
    pub pods: BTreeMap<Key, Pod>,
    /// The problems of files that were not returned before, with the path of each file.
    pub problems: BTreeMap<PathBuf, String>,
}

impl Directory {
    /// Returns the manifests below a path, before they have been read.
    pub fn new(path: &Path, node: &str) -> Self {
        Self {
            path: path.to_owned(),
            node: node.to_owned(),
            files: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    /// Reads the directory, one Pod a file, but for files whose names begin with a dot. A directory that does not
    /// exist has no Pods. A file that is broken, or cannot be read, has the Pod that it had before. Of two files with
    /// a Pod of the same name, the last one has it, as in the kubelet.
    ///
    /// # Errors
    /// If the directory cannot be read. What it held before stays known.
    pub fn read(&mut self, now: Timestamp) -> io::Result<Reading> {
        let paths = paths(&self.path)?;
        let mut before = std::mem::take(&mut self.files);
        for path in paths.iter().flatten() {
            let known = before.remove(path).unwrap_or_default();
            let known = known.read(path, &self.node, now);
            self.files
                .extend(known.map(|known| (path.to_owned(), known)));
        }
        let (pods, mut problems) = self.pods();
        if paths.is_none() {
            problems.insert(
                self.path.clone(),
                "path does not exist, ignoring".to_owned(),
            );
        }
        let told = std::mem::replace(&mut self.told, problems.clone());
        problems.retain(|path, problem| told.get(path) != Some(problem));
        Ok(Reading { pods, problems })
    }

    /// Returns the Pods of all files, and the problems of these.
    fn pods(&self) -> (BTreeMap<Key, Pod>, BTreeMap<PathBuf, String>) {
        let (mut pods, mut problems) = (BTreeMap::new(), BTreeMap::new());
        let mut files: BTreeMap<Key, &Path> = BTreeMap::new();
        for (path, known) in &self.files {
            let problem = known.problem.clone();
            problems.extend(problem.map(|problem| (path.clone(), problem)));
            let Some(pod) = &known.pod else { continue };
            let key = Key::of(&pod.metadata);
            if let Some(other) = files.insert(key.clone(), path) {
                let problem = format!("ignored: {} has Pod {key}, too", path.display());
                problems.insert(other.to_owned(), problem);
            }
            pods.insert(key, pod.clone());
        }
        (pods, problems)
    }
}

/// Returns the paths of the files in a directory; `None` if it does not exist.
fn paths(directory: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            paths.push(entry.path());
        }
    }
    Ok(Some(paths))
}

impl Known {
    /// Reads the file again; `None` if it is gone.
    fn read(self, path: &Path, node: &str, now: Timestamp) -> Option<Self> {
        let text = match text(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                // With the text unknown, the file is parsed when it can be read again.
                let (text, problem) = (None, Some(error.to_string()));
                return Some(Self {
                    text,
                    problem,
                    ..self
                });
            }
            Ok(text) => text,
        };
        let hash = Some(fnv128a(&text));
        if self.text == hash {
            return Some(self);
        }
        Some(match manifest::read(&text, path, node, now) {
            Ok(manifest) => {
                // The same Pod has been seen first when it was.
                let same = |pod: &Pod| pod.metadata.uid == manifest.pod.metadata.uid;
                let pod = self.pod.filter(same).unwrap_or(manifest.pod);
                let ignored = manifest.unknown;
                let problem =
                    (!ignored.is_empty()).then(|| format!("ignored: {}", ignored.join(", ")));
                Self {
                    text: hash,
                    pod: Some(pod),
                    problem,
                }
            }
            Err(error) => Self {
                text: hash,
                pod: self.pod,
                problem: Some(error.to_string()),
            },
        })
    }
}

/// Returns the content of a file.
fn text(path: &Path) -> io::Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        let problem = "a directory is not read for manifests";
        return Err(io::Error::other(problem));
    }
    // Others, such as named pipes, could block.
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a directory or file"));
    }
    let mut text = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut text)?;
    match u64::try_from(text.len()) {
        Ok(length) if length <= LARGEST => Ok(text),
        _ => Err(io::Error::other(format!(
            "it is larger than {LARGEST} bytes"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn manifest(name: &str, image: &str) -> String {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: a, image: {image}}}]}}}}"
        )
    }

    struct Fixture {
        folder: TempDir,
        directory: Directory,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let directory = Directory::new(folder.path(), "n");
            Self { folder, directory }
        }

        fn write(&self, file: &str, text: &str) {
            fs::write(self.folder.path().join(file), text).unwrap();
        }

        fn remove(&self, file: &str) {
            fs::remove_file(self.folder.path().join(file)).unwrap();
        }

        /// Returns name and image of the Pods, and the files with new problems.
        fn read(&mut self) -> (Vec<(String, String)>, Vec<String>) {
            let reading = self.directory.read(Timestamp::now()).unwrap();
            let pods = reading.pods.into_iter().map(|(key, pod)| {
                let image = pod.spec.containers[0].image.clone();
                (key.name, image)
            });
            let problems = reading.problems.iter();
            let problems = problems.map(|(path, problem)| {
                let file = path.file_name().unwrap_or_default().display();
                format!("{file}: {problem}")
            });
            (pods.collect(), problems.collect())
        }
    }

    fn pods(pods: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(name, image): &(&str, &str)| ((*name).to_owned(), (*image).to_owned());
        pods.iter().map(owned).collect()
    }

    #[test]
    fn each_file_is_a_pod_until_it_goes() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.read(), (pods(&[]), vec![]));
        fixture.write("a.yaml", &manifest("a", "one"));
        fixture.write("b", &manifest("b", "one"));
        fixture.write(".c.yaml", &manifest("c", "one"));
        let both = pods(&[("a-n", "one"), ("b-n", "one")]);
        assert_eq!(fixture.read(), (both, vec![]));
        fixture.write("a.yaml", &manifest("a", "two"));
        fixture.remove("b");
        assert_eq!(fixture.read(), (pods(&[("a-n", "two")]), vec![]));
    }

    #[test]
    fn a_broken_file_is_told_once_and_has_the_pod_that_it_had_before() {
        let mut fixture = Fixture::new();
        fixture.write("a", &manifest("a", "one"));
        fixture.write("new", "{");
        let one = pods(&[("a-n", "one")]);
        let (found, problems) = fixture.read();
        assert_eq!((found, problems.len()), (one.clone(), 1));
        assert!(problems[0].starts_with("new: couldn't parse as pod("));
        assert_eq!(fixture.read(), (one.clone(), vec![]));
        fixture.write("a", "kind: Pod");
        let (found, problems) = fixture.read();
        assert_eq!(found, one);
        let expected =
            "a: couldn't parse as pod(Object 'apiVersion' is missing), please check config file";
        assert_eq!(problems, [expected]);
        assert_eq!(fixture.read(), (one.clone(), vec![]));
        fixture.write("a", "kind: {}");
        assert_eq!(fixture.read().1.len(), 1, "it is broken in another way");
        fixture.write("a", &manifest("a", "two"));
        assert_eq!(fixture.read(), (pods(&[("a-n", "two")]), vec![]));
        fixture.write("a", "kind: {}");
        assert_eq!(fixture.read().1.len(), 1, "it is broken again");
        fixture.remove("a");
        assert_eq!(fixture.read(), (pods(&[]), vec![]));
    }

    #[test]
    fn the_last_of_two_files_has_their_pod() {
        let mut fixture = Fixture::new();
        fixture.write("b", &manifest("a", "b"));
        fixture.write("a", &manifest("a", "a"));
        let (found, problems) = fixture.read();
        assert_eq!(found, pods(&[("a-n", "b")]));
        assert!(problems[0].starts_with("a: ignored: "), "{problems:?}");
        fixture.remove("b");
        assert_eq!(fixture.read(), (pods(&[("a-n", "a")]), vec![]));
    }

    #[test]
    fn what_is_no_file_is_told_and_a_directory_that_is_gone_has_no_pods() {
        let mut fixture = Fixture::new();
        fixture.write("a", &manifest("a", "a"));
        fs::create_dir(fixture.folder.path().join("more")).unwrap();
        let pipe = fixture.folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let large = File::create(fixture.folder.path().join("large")).unwrap();
        large.set_len(LARGEST + 1).unwrap();
        let (found, problems) = fixture.read();
        assert_eq!(found, pods(&[("a-n", "a")]));
        let expected = [
            "large: it is larger than 10485760 bytes",
            "more: a directory is not read for manifests",
            "pipe: it is not a directory or file",
        ];
        assert_eq!(problems, expected);
        fs::remove_dir_all(fixture.folder.path()).unwrap();
        let (found, problems) = fixture.read();
        assert_eq!((found, problems.len()), (pods(&[]), 1));
        assert!(problems[0].ends_with("path does not exist, ignoring"));
        assert_eq!(fixture.read(), (pods(&[]), vec![]));
    }

    #[test]
    fn a_directory_that_cannot_be_read_keeps_what_it_held() {
        let mut fixture = Fixture::new();
        fixture.write("a", &manifest("a", "a"));
        fixture.read();
        let path = fixture.directory.path.clone();
        fixture.directory.path = path.join("a");
        assert!(fixture.directory.read(Timestamp::now()).is_err());
        fixture.directory.path = path;
        assert_eq!(fixture.read(), (pods(&[("a-n", "a")]), vec![]));
    }
}
