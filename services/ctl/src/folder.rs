//! The state folder: where everything of a cluster is that is not in its binaries.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf, absolute};

use anyhow::Context;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

/// A cluster's state folder and the repository that it belongs to.
#[derive(Clone, Debug)]
pub struct Folder {
    root: PathBuf,
    state: PathBuf,
}

impl Folder {
    /// The folder that was `asked` for, or `.setpoint` in the repository around `here`.
    pub fn find(here: &Path, asked: Option<PathBuf>) -> Self {
        let marks = [".setpoint", "deploy/config"];
        let is_root = |path: &&Path| marks.iter().any(|mark| path.join(mark).is_dir());
        let root = here.ancestors().find(is_root).unwrap_or(here).to_owned();
        let state = asked.map_or_else(|| root.join(".setpoint"), |asked| here.join(asked));
        let state = absolute(&state).unwrap_or(state);
        Self { root, state }
    }

    /// Where processes run, so that they find `deploy/config/<service>.toml`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The state folder itself.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// etcd's data.
    pub fn etcd(&self) -> PathBuf {
        self.state.join("etcd")
    }

    /// What must outlive the agent of a node.
    pub fn node(&self, name: &str) -> PathBuf {
        self.nodes().join(name)
    }

    /// What kubectl needs to find the cluster.
    pub fn kubeconfig(&self) -> PathBuf {
        self.state.join("kubeconfig")
    }

    /// How large the cluster is that runs.
    pub fn shape(&self) -> PathBuf {
        self.state.join("cluster.json")
    }

    /// `<service>-<n>` of every process whose id is recorded, in order.
    pub fn recorded(&self) -> Vec<String> {
        let files = fs::read_dir(self.state.join("run")).into_iter().flatten();
        let paths = files.flatten().map(|file| file.path());
        let ids = paths.filter(|path| path.extension().is_some_and(|end| end == "pid"));
        let names = ids.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// The log of `<service>-<n>`.
    pub fn log(&self, name: &str) -> PathBuf {
        self.state.join("log").join(format!("{name}.log"))
    }

    /// The process id of `<service>-<n>`, a decimal number and nothing else.
    pub fn pid(&self, name: &str) -> PathBuf {
        self.run(name, "pid")
    }

    /// The port of `<service>-<n>`, a decimal number and nothing else.
    pub fn port(&self, name: &str) -> PathBuf {
        self.run(name, "port")
    }

    /// A path as the user would type it.
    pub fn shown<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }

    /// Makes the folder, and keeps it from every other `setpoint` until the answer is dropped.
    pub fn lock(&self) -> anyhow::Result<Flock<File>> {
        for part in ["run", "log"] {
            let path = self.state.join(part);
            fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        let path = self.state.join("lock");
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
            Errno::EWOULDBLOCK => {
                anyhow::anyhow!("another setpoint is at work on {}", self.state.display())
            }
            errno => anyhow::anyhow!("cannot lock {}: {errno}", path.display()),
        })
    }

    /// Forgets every object, every container and every log.
    pub fn clear(&self) -> anyhow::Result<()> {
        let logs = self.state.join("log");
        for path in [self.etcd(), self.nodes(), logs.clone()] {
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot delete {}", path.display()));
                }
                _ => {}
            }
        }
        fs::create_dir_all(logs).context("cannot make the folder for logs")
    }

    fn nodes(&self) -> PathBuf {
        self.state.join("node")
    }

    fn run(&self, name: &str, what: &str) -> PathBuf {
        self.state.join("run").join(format!("{name}.{what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_is_in_the_repository_from_wherever_in_it_one_calls() {
        let root = tempfile::tempdir().unwrap();
        let inside = root.path().join("services/ctl");
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(root.path().join("deploy/config")).unwrap();
        let folder = Folder::find(&inside, None);
        assert_eq!(folder.state(), root.path().join(".setpoint"));
        assert_eq!(
            folder.shown(&folder.log("scheduler-1")).to_string(),
            ".setpoint/log/scheduler-1.log"
        );
    }

    #[test]
    fn only_one_setpoint_works_on_a_folder() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::find(root.path(), None);
        let held = folder.lock().unwrap();
        assert!(
            folder
                .lock()
                .unwrap_err()
                .to_string()
                .starts_with("another setpoint is at work")
        );
        drop(held);
        folder.lock().unwrap();
    }

    #[test]
    fn a_fresh_start_forgets_objects_and_keeps_the_rest() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::find(root.path(), None);
        let _held = folder.lock().unwrap();
        fs::create_dir_all(folder.etcd().join("member")).unwrap();
        fs::write(folder.kubeconfig(), "").unwrap();
        folder.clear().unwrap();
        folder.clear().unwrap();
        assert!(!folder.etcd().exists());
        assert!(folder.kubeconfig().exists());
    }
}
