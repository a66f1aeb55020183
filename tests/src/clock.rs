//! A wall clock for a single process that can be set while the process runs, based on Debian's package faketime.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Cluster, eventually};

/// Prefixes of files that libfaketime leaves behind when its process is killed; a new process with the same id would
/// fail.
const LEFTOVERS: [&str; 2] = ["faketime_shm_", "sem.faketime_sem_"];

/// Replaces CLOCK_REALTIME only: monotonic clocks and timers are not affected.
pub struct WallClock {
    library: PathBuf,
    directory: TempDir,
}

impl WallClock {
    /// Creates a clock with the true time. Returns `None`, with a message, if the package is not installed.
    pub fn new() -> Option<Self> {
        let Some(library) = library() else {
            eprintln!("SKIPPED: no clock can be set (Debian: apt-get install faketime)");
            return None;
        };
        let directory = TempDir::new().expect("a temporary directory");
        let clock = Self { library, directory };
        clock.set(0);
        Some(clock)
    }

    /// Sets the clock `ahead` seconds ahead of the true time; a negative number sets it behind.
    pub fn set(&self, ahead: i64) {
        let (new, file) = (self.directory.path().join("new"), self.file());
        fs::write(&new, format!("{ahead:+}\n")).expect("it is writable");
        // Renamed atomically, because the process may read the file at any time.
        fs::rename(new, file).expect("it is writable");
    }

    /// Returns the environment of a process that uses this clock.
    pub fn environment(&self) -> [(&'static str, PathBuf); 4] {
        [
            ("LD_PRELOAD", self.library.clone()),
            ("FAKETIME_TIMESTAMP_FILE", self.file()),
            ("FAKETIME_NO_CACHE", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ]
    }

    /// Removes the files that a process with such a clock needs only during its start.
    ///
    /// # Panics
    /// If the process has not started after a minute.
    pub(crate) fn clear_up(cluster: &mut Cluster, name: &str) {
        eventually("the process runs", || {
            let log = cluster.log(name);
            (!log.is_empty()).then_some(()).ok_or(log)
        });
        Self::remove_leftovers(cluster.process(name).pid());
    }

    /// Removes the files that the process with this id, which runs, needed only during its start.
    pub fn remove_leftovers(pid: u32) {
        for prefix in LEFTOVERS {
            let file = Path::new("/dev/shm").join(format!("{prefix}{pid}"));
            // The process has the file open, or has ended and removed it.
            let _ = fs::remove_file(file);
        }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("ahead")
    }
}

fn library() -> Option<PathBuf> {
    let directories = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut paths =
        directories.map(|directory| directory.path().join("faketime/libfaketimeMT.so.1"));
    paths.find(|path| path.is_file())
}
