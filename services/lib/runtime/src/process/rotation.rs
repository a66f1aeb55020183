//! Log rotation: `log` is the current file, `log.1` the previous one, and so on.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::PathBuf;

use setpoint_host::private;

use super::folder::Folder;
use crate::LogLimits;

/// Maximum size of one read.
const CHUNK: usize = 64 << 10;

/// A writer that rotates the log when the current file is full, and removes the oldest file.
pub struct Rotation {
    folder: Folder,
    limits: LogLimits,
    file: File,
    size: u64,
}

impl Rotation {
    /// Opens the log of a container for appending.
    pub fn open(folder: &Folder, limits: LogLimits) -> io::Result<Self> {
        let file = folder.log()?;
        let size = file.metadata()?.len();
        Ok(Self {
            folder: folder.clone(),
            limits,
            file,
            size,
        })
    }

    /// Copies everything from `from` into the log. Write errors are ignored, because the container must not block on a
    /// full disk.
    pub fn drain(mut self, mut from: impl Read) {
        let mut buffer = vec![0; CHUNK];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => {
                    let _ = self.write(&buffer[..read]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Writes a chunk, and rotates when the file is full.
    fn write(&mut self, mut piece: &[u8]) -> io::Result<()> {
        while !piece.is_empty() {
            let (now, later) = piece.split_at(self.fitting(piece));
            self.append(now)?;
            if !later.is_empty() {
                self.rotate()?;
            }
            piece = later;
        }
        Ok(())
    }

    /// Returns how many bytes of a chunk go into the current file: whole lines, unless a single line exceeds the
    /// maximum size of a file.
    fn fitting(&self, piece: &[u8]) -> usize {
        let left = self.limits.max_size.saturating_sub(self.size);
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        if piece.len() <= left {
            return piece.len();
        }
        let end = |place: usize| place.saturating_add(1);
        let is_end = |byte: &u8| *byte == b'\n';
        match piece[..left].iter().rposition(is_end) {
            Some(place) => end(place),
            None if self.size == 0 => piece.iter().position(is_end).map_or(piece.len(), end),
            None => 0,
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.size = self.size.saturating_add(length);
        self.file.write_all(bytes)
    }

    /// Begins a new file. If it cannot be created, the others stay where they are.
    fn rotate(&mut self) -> io::Result<()> {
        let new = self.folder.path().join("log.new");
        let file = private::options().append(true).open(&new)?;
        for number in (0..self.limits.max_files.saturating_sub(1)).rev() {
            let older = self.path(number.saturating_add(1));
            match fs::rename(self.path(number), older) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(new, self.path(0))?;
        self.file = file;
        self.size = 0;
        Ok(())
    }

    fn path(&self, number: u32) -> PathBuf {
        self.folder.path().join(match number {
            0 => "log".to_owned(),
            number => format!("log.{number}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the files of a log with at most 10 bytes each, newest first.
    fn rotated(pieces: &[&str]) -> Vec<String> {
        let state = tempfile::tempdir().unwrap();
        let folder = Folder::new(state.path());
        let limits = LogLimits {
            max_size: 10,
            max_files: 3,
        };
        let mut log = Rotation::open(&folder, limits).unwrap();
        for piece in pieces {
            log.write(piece.as_bytes()).unwrap();
        }
        let names = ["log", "log.1", "log.2", "log.3"];
        let files = names.map(|name| fs::read_to_string(state.path().join(name)));
        files.into_iter().filter_map(Result::ok).collect()
    }

    /// Checks F31.
    #[test]
    fn a_full_file_is_rotated_and_the_oldest_is_removed() {
        assert_eq!(rotated(&["one\ntwo\n", "six\n"]), ["six\n", "one\ntwo\n"]);
        let many: Vec<_> = (0..9).map(|n| format!("line {n}\n")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        let expected = ["line 8\n", "line 7\n", "line 6\n"];
        assert_eq!(rotated(&many), expected);
        assert_eq!(rotated(&[&many.concat()]), expected);
    }

    /// Checks F31.
    #[test]
    fn a_line_longer_than_a_file_stays_whole_if_it_is_one_chunk() {
        let files = rotated(&["a\n0123456789012345\nb\n"]);
        assert_eq!(files, ["b\n", "0123456789012345\n", "a\n"]);
    }

    /// Checks F31.
    #[test]
    fn output_without_line_breaks_is_rotated() {
        let files = rotated(&["0123456789", "0123456789", "0123456789", "0123456789"]);
        assert_eq!(files.len(), 3);
        assert!(files.iter().all(|file| file.len() <= 10), "{files:?}");
    }
}
