//! A file that is rotated by size, whose predecessors are kept by age and number (upstream: `lumberjack`).
//!
//! `audit.log` becomes `audit-2026-11-28T10-00-00.000.log`, in UTC.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::{Timestamp, tz::TimeZone};

use super::LogOptions;

/// The mode of log files: only the user of the process may read them.
const MODE: u32 = 0o600;
const FORMAT: &str = "%Y-%m-%dT%H-%M-%S.%3f";

/// A file, with the number of bytes in it.
pub(super) struct RotatedFile {
    options: LogOptions,
    file: File,
    size: u64,
    /// Whether it is a regular file. A device or a pipe is not rotated.
    is_regular: bool,
}

impl RotatedFile {
    pub(super) fn open(options: LogOptions) -> io::Result<Self> {
        let file = open(&options.path)?;
        let metadata = file.metadata()?;
        let rotated = Self {
            size: metadata.len(),
            is_regular: metadata.is_file(),
            file,
            options,
        };
        rotated.remove_old();
        Ok(rotated)
    }

    /// Appends whole lines. If they would make the file too large, another one is begun before.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        let added = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        let max = self.options.max_size;
        let is_full = max > 0 && self.size > 0 && self.size.saturating_add(added) > max;
        if self.is_regular && is_full {
            self.rotate_or_go_on();
        }
        let written = self.file.write_all(lines);
        match &written {
            Ok(()) => self.size = self.size.saturating_add(added),
            // A part may have been written.
            Err(_) => self.size = self.file.metadata().map_or(self.size, |found| found.len()),
        }
        written
    }

    /// Begins another file. If that fails, the lines go where they can, and it is tried again when as much was added.
    fn rotate_or_go_on(&mut self) {
        if let Err(error) = self.rotate() {
            let path = self.options.path.display();
            tracing::error!(%error, %path, "the audit log was not rotated");
            self.size = 0;
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        fs::rename(&self.options.path, self.backup_path())?;
        self.file = open(&self.options.path)?;
        self.size = 0;
        self.remove_old();
        Ok(())
    }

    /// Returns a path that no file has: the time, and a number if there was a rotation in the same millisecond.
    fn backup_path(&self) -> PathBuf {
        let [prefix, suffix] = parts(&self.options.path);
        let now = Timestamp::now().to_zoned(TimeZone::UTC).strftime(FORMAT);
        let first = format!("{prefix}-{now}{suffix}");
        let others = (1..).map(|number: u32| format!("{prefix}-{now}.{number}{suffix}"));
        let names = std::iter::once(first).chain(others);
        let mut paths = names.map(|name| self.options.path.with_file_name(name));
        let free = paths.find(|path| !path.exists());
        free.unwrap_or_else(|| self.options.path.with_extension("old"))
    }

    /// Deletes predecessors that are too old or too many. A failure does not matter until the next time.
    fn remove_old(&self) {
        let mut backups = self.backups();
        backups.sort_by(|one, other| other.cmp(one));
        let kept = match self.options.max_backups {
            0 => backups.len(),
            limit => limit,
        };
        let is_old = |path: &Path| match self.options.max_age {
            Duration::ZERO => false,
            limit => age(path).is_some_and(|age| age > limit),
        };
        let removed = backups.iter().enumerate();
        let removed = removed.filter(|(index, path)| *index >= kept || is_old(path));
        for (_, path) in removed {
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!(%error, path = %path.display(), "an old audit log was not deleted");
            }
        }
    }

    /// Returns the predecessors, in no order.
    fn backups(&self) -> Vec<PathBuf> {
        let [prefix, suffix] = parts(&self.options.path);
        let directory = self
            .options
            .path
            .parent()
            .filter(|path| path != &Path::new(""));
        let Ok(entries) = fs::read_dir(directory.unwrap_or(Path::new("."))) else {
            return Vec::new();
        };
        let is_backup = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            let time = name.and_then(|name| name.strip_prefix(&prefix)?.strip_suffix(&suffix));
            time.is_some_and(is_time)
        };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.filter(is_backup).collect()
    }
}

/// Returns whether a part of a name is that of a rotation, `-2026-11-28T10-00-00.000`, so that no other file is
/// deleted.
fn is_time(text: &str) -> bool {
    let form = "-dddd-dd-ddTdd-dd-dd.ddd";
    let (time, number) = text.split_at_checked(form.len()).unwrap_or(("", "x"));
    let fits = |(wanted, given): (u8, u8)| match wanted {
        b'd' => given.is_ascii_digit(),
        _ => wanted == given,
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    time.len() == form.len()
        && form.bytes().zip(time.bytes()).all(fits)
        && (number.is_empty() || number.strip_prefix('.').is_some_and(is_number))
}

/// Returns what is before and after the time in the name of a predecessor.
fn parts(path: &Path) -> [String; 2] {
    let text = |part: Option<&std::ffi::OsStr>| {
        let part = part.map(|part| part.to_string_lossy().into_owned());
        part.unwrap_or_default()
    };
    let suffix = match text(path.extension()) {
        extension if extension.is_empty() => extension,
        extension => format!(".{extension}"),
    };
    [text(path.file_stem()), suffix]
}

fn age(path: &Path) -> Option<Duration> {
    let written = fs::metadata(path).ok()?.modified().ok()?;
    SystemTime::now().duration_since(written).ok()
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(MODE).open(path)
}
