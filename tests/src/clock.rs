//! A wall clock of one process's own, which can be set while that runs. Debian's package faketime makes it so.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Process, eventually};

/// What the library leaves behind when its process is killed, and stumbles over when the process id is used again.
const LEFTOVERS: [&str; 2] = ["faketime_shm_", "sem.faketime_sem_"];

/// Stands in for CLOCK_REALTIME and nothing else: monotonic clocks and timers go on as they are.
pub struct WallClock {
    library: PathBuf,
    folder: TempDir,
}

impl WallClock {
    /// A clock that is right. `None`, and a loud word, where the package is not installed.
    pub fn new() -> Option<Self> {
        let Some(library) = library() else {
            eprintln!("SKIPPED: no clock can be set (Debian: apt-get install faketime)");
            return None;
        };
        let folder = TempDir::new().expect("a temporary folder");
        let clock = Self { library, folder };
        clock.set(0);
        Some(clock)
    }

    /// Sets it so many seconds ahead of the true time, or behind.
    pub fn set(&self, ahead: i64) {
        let (new, file) = (self.folder.path().join("new"), self.file());
        fs::write(&new, format!("{ahead:+}\n")).expect("it is writable");
        // At one move: the file is read whenever the process asks for the time.
        fs::rename(new, file).expect("it is writable");
    }

    /// The environment of a process that goes by it.
    pub(crate) fn environment(&self) -> [String; 4] {
        [
            format!("LD_PRELOAD={}", self.library.display()),
            format!("FAKETIME_TIMESTAMP_FILE={}", self.file().display()),
            "FAKETIME_NO_CACHE=1".to_owned(),
            "FAKETIME_DONT_FAKE_MONOTONIC=1".to_owned(),
        ]
    }

    /// Removes what a process that goes by such a clock needs for its start only.
    ///
    /// # Panics
    /// When it has not started after a minute.
    pub(crate) fn clear_up(process: &Process) {
        eventually("the process runs", || {
            let log = process.log();
            (!log.is_empty()).then_some(()).ok_or(log)
        });
        for name in LEFTOVERS {
            let file = Path::new("/dev/shm").join(format!("{name}{}", process.pid()));
            // The process has it open, and may have ended meanwhile.
            let _ = fs::remove_file(file);
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("ahead")
    }
}

fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut paths = folders.map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"));
    paths.find(|path| path.is_file())
}
