//! The paths of a cluster's state directory, and its lock.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf, absolute};

use anyhow::Context;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use setpoint_host::private;

use super::cluster_spec::address;
use super::kubeconfig::Kubeconfig;
use super::pki::Pki;
use crate::advice::advised;

/// The state directory of a cluster and the repository that it belongs to.
#[derive(Clone, Debug)]
pub struct StateDir {
    root: PathBuf,
    state: PathBuf,
}

impl StateDir {
    /// Returns the directory `given`, relative to `here`, or else `.setpoint` in the repository that contains `here`.
    pub fn find(here: &Path, given: Option<PathBuf>) -> Self {
        let marks = [".setpoint", "deploy/config"];
        let is_root = |path: &&Path| marks.iter().any(|mark| path.join(mark).is_dir());
        let root = here.ancestors().find(is_root).unwrap_or(here).to_owned();
        let state = given.map_or_else(|| root.join(".setpoint"), |given| here.join(given));
        let state = absolute(&state).unwrap_or(state);
        Self { root, state }
    }

    /// The working directory of all processes; `deploy/config/<service>.toml` is relative to it.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The state directory itself.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The data directory of etcd.
    pub fn etcd(&self) -> PathBuf {
        self.state.join("etcd")
    }

    /// The state directory of a node agent; it outlives the agent's process.
    pub fn node(&self, name: &str) -> PathBuf {
        self.all_nodes().join(name)
    }

    /// Returns the state directories of all node agents that have run.
    pub fn nodes(&self) -> Vec<PathBuf> {
        let nodes = fs::read_dir(self.all_nodes()).into_iter().flatten();
        nodes.flatten().map(|node| node.path()).collect()
    }

    /// The folder of agents that have joined a cluster from here.
    pub fn joined(&self) -> PathBuf {
        self.state.join("join")
    }

    /// The folder of the parts of a control plane that have joined a cluster from here.
    pub fn components(&self) -> PathBuf {
        self.state.join("control-plane")
    }

    /// Returns whether a cluster was started here, rather than agents and parts of another one alone.
    pub fn has_cluster(&self) -> bool {
        self.state.join("pki").exists() && !self.components().exists()
    }

    /// The kubeconfig file of the cluster.
    pub fn kubeconfig(&self) -> PathBuf {
        self.state.join("kubeconfig")
    }

    /// Writes the administrator's kubeconfig for the gateway on `port` of 127.0.0.1.
    ///
    /// # Errors
    /// The administrator has no certificate yet, or the file cannot be written.
    pub fn write_kubeconfig(&self, port: u16) -> anyhow::Result<()> {
        let administrator = self.pki().administrator();
        Kubeconfig::read(address(port), &administrator)?.write(&self.kubeconfig())
    }

    /// The certificates of the cluster.
    pub fn pki(&self) -> Pki {
        Pki::new(self.state.join("pki"))
    }

    /// The file that records the size and the ports of the running cluster.
    pub fn cluster_spec(&self) -> PathBuf {
        self.state.join("cluster.json")
    }

    /// The file of the members of etcd that the first machine of a cluster of several knows.
    pub fn etcd_members(&self) -> PathBuf {
        self.state.join("etcd-members.json")
    }

    /// Returns the names `<service>-<n>` of all processes with a recorded id, sorted. They may have ended.
    pub fn recorded(&self) -> Vec<String> {
        let files = fs::read_dir(self.state.join("run")).into_iter().flatten();
        let paths = files.flatten().map(|file| file.path());
        let ids = paths.filter(|path| path.extension().is_some_and(|end| end == "pid"));
        let names = ids.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    /// The log file of the process `<service>-<n>`.
    pub fn log(&self, name: &str) -> PathBuf {
        self.state.join("log").join(format!("{name}.log"))
    }

    /// The file with the process id of `<service>-<n>`, a decimal number.
    pub fn pid(&self, name: &str) -> PathBuf {
        self.run(name, "pid")
    }

    /// The file with the port of `<service>-<n>`, a decimal number.
    pub fn port(&self, name: &str) -> PathBuf {
        self.run(name, "port")
    }

    /// Deletes the records of a process that has ended.
    pub fn remove_records(&self, name: &str) {
        for path in [self.pid(name), self.port(name)] {
            // Usually absent already; a remaining file is recognised as stale.
            let _ = fs::remove_file(path);
        }
    }

    /// Displays a path relative to the repository, if it is inside.
    pub fn shown<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }

    /// Creates the directory and locks it against other `setpoint` commands until the result is dropped.
    ///
    /// # Errors
    /// Another command holds the lock; this does not wait.
    pub fn lock(&self) -> anyhow::Result<Flock<File>> {
        self.create()?;
        let path = self.state.join("lock");
        let file =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| match errno {
            Errno::EWOULDBLOCK => {
                let message = format!("another setpoint command is using {}", self.state.display());
                advised(message, "the same command again, once that one has ended")
            }
            errno => anyhow::anyhow!("cannot lock {}: {errno}", path.display()),
        })
    }

    /// Creates the directory, which only its user may enter.
    ///
    /// # Errors
    /// The file system refuses it.
    pub fn create(&self) -> anyhow::Result<()> {
        let is_ours = !self.state.exists() || self.state.join("run").is_dir();
        let own = is_ours.then(|| self.state.clone());
        let parts = ["run", "log"].map(|part| self.state.join(part));
        for path in own.into_iter().chain(parts) {
            private::create_dir_all(&path)
                .with_context(|| format!("cannot create {}", path.display()))?;
        }
        Ok(())
    }

    /// Deletes all objects, container state and logs, and the agents that have joined, whom the cluster does not know
    /// any more. Nothing may run.
    pub fn clear(&self) -> anyhow::Result<()> {
        let logs = self.state.join("log");
        for path in [self.etcd(), self.all_nodes(), self.joined(), logs.clone()] {
            match fs::remove_dir_all(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot delete {}", path.display()));
                }
                _ => {}
            }
        }
        match fs::remove_file(self.etcd_members()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).context("cannot delete the known members of etcd");
            }
            _ => {}
        }
        private::create_dir_all(&logs).context("cannot create the log directory")
    }

    fn all_nodes(&self) -> PathBuf {
        self.state.join("node")
    }

    fn run(&self, name: &str, extension: &str) -> PathBuf {
        self.state.join("run").join(format!("{name}.{extension}"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_state_directory_is_the_same_from_everywhere_in_the_repository() {
        let root = tempfile::tempdir().unwrap();
        let inside = root.path().join("services/ctl");
        fs::create_dir_all(&inside).unwrap();
        fs::create_dir_all(root.path().join("deploy/config")).unwrap();
        let state_dir = StateDir::find(&inside, None);
        assert_eq!(state_dir.state(), root.path().join(".setpoint"));
        assert_eq!(
            state_dir.shown(&state_dir.log("scheduler-1")).to_string(),
            ".setpoint/log/scheduler-1.log"
        );
    }

    #[test]
    fn a_locked_state_directory_refuses_a_second_command() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        let held = state_dir.lock().unwrap();
        assert!(
            state_dir
                .lock()
                .unwrap_err()
                .to_string()
                .starts_with("another setpoint command is using")
        );
        drop(held);
        state_dir.lock().unwrap();
    }

    /// Checks DG19, also for what an earlier version has left. A directory that is not of a cluster keeps its
    /// permissions.
    #[test]
    fn others_can_read_neither_the_kubeconfig_nor_the_state_directory() {
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let allow = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        let private = |state_dir: &StateDir| {
            state_dir.create().unwrap();
            state_dir.pki().ensure([]).unwrap();
            state_dir.write_kubeconfig(6443).unwrap();
            let state = state_dir.state();
            let parts = ["log", "run", "pki", "pki/admin"].map(|part| state.join(part));
            assert!(parts.iter().all(|dir| mode(dir) == 0o700));
            assert_eq!(mode(state), 0o700);
            let keys = ["ca.key", "etcd-ca.key", "admin/tls.key"];
            let keys = keys.map(|key| mode(&state.join("pki").join(key)));
            assert_eq!(keys, [0o600; 3]);
            assert_eq!(mode(&state_dir.kubeconfig()), 0o600);
        };
        private(&state_dir);
        allow(&state_dir.kubeconfig(), 0o644);
        allow(state_dir.state(), 0o755);
        private(&state_dir);
        let shared = tempfile::tempdir().unwrap();
        allow(shared.path(), 0o755);
        let state_dir = StateDir::find(root.path(), Some(shared.path().to_owned()));
        state_dir.create().unwrap();
        assert_eq!(mode(shared.path()), 0o755);
        assert_eq!(mode(&shared.path().join("log")), 0o700);
    }

    #[test]
    fn clear_deletes_objects_and_keeps_the_kubeconfig() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        let _held = state_dir.lock().unwrap();
        fs::create_dir_all(state_dir.etcd().join("member")).unwrap();
        fs::create_dir_all(state_dir.joined().join("worker-1")).unwrap();
        fs::write(state_dir.kubeconfig(), "").unwrap();
        state_dir.clear().unwrap();
        state_dir.clear().unwrap();
        assert!(!state_dir.etcd().exists());
        assert!(!state_dir.joined().exists());
        assert!(state_dir.kubeconfig().exists());
    }
}
