//! Reads the log file of a container.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::try_unfold;
use tokio::io::AsyncReadExt as _;

use crate::Error;
use crate::log::Log;

fn state_error(what: impl ToString, source: io::Error) -> Error {
    let what = what.to_string();
    Error::State { what, source }
}

/// Polling interval of a log that is followed.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum size of one read.
const CHUNK: u64 = 32 << 10;

/// Streams the log of the container `name` from its last `tail` lines to its end, or with `follow`, until
/// `has_exited`.
///
/// # Errors
/// If the file cannot be read.
pub fn read(
    name: &str,
    path: PathBuf,
    tail: Option<u64>,
    follow: bool,
    has_exited: impl Fn() -> bool + Send + Sync + 'static,
) -> Result<Log, Error> {
    let name = name.to_owned();
    let file = File::open(&path).and_then(|file| at_tail(file, tail));
    let file = file.map_err(|source| state_error(&name, source))?;
    let file = tokio::fs::File::from_std(file);
    let file = Follower { path, file };
    let pieces = try_unfold((file, has_exited), move |(mut file, has_exited)| {
        let name = name.clone();
        async move {
            let piece = next_chunk(&mut file, &has_exited, follow).await;
            let piece = piece.map_err(|source| state_error(name, source))?;
            Ok(piece.map(|piece| (piece, (file, has_exited))))
        }
    });
    Ok(pieces.boxed())
}

async fn next_chunk(
    log: &mut Follower,
    has_exited: &(impl Fn() -> bool + Sync),
    follow: bool,
) -> io::Result<Option<Bytes>> {
    loop {
        // Checked before the read, so that everything written before the exit is still read.
        let ended = !follow || has_exited();
        let mut piece = Vec::new();
        if (&mut log.file).take(CHUNK).read_to_end(&mut piece).await? > 0 {
            return Ok(Some(piece.into()));
        }
        if log.has_rotated().await? {
            continue;
        }
        if ended {
            return Ok(None);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The current log file and the position in it.
struct Follower {
    path: PathBuf,
    file: tokio::fs::File,
}

impl Follower {
    /// Switches to the current log file if the one being read was rotated. As with the kubelet, files that were created
    /// and rotated since the last poll are skipped.
    async fn has_rotated(&mut self) -> io::Result<bool> {
        let newest = tokio::fs::File::open(&self.path).await?;
        let (old, new) = (self.file.metadata().await?, newest.metadata().await?);
        let moved = (old.dev(), old.ino()) != (new.dev(), new.ino());
        if moved {
            self.file = newest;
        }
        Ok(moved)
    }
}

/// Positions a file at the start of its last `lines` lines.
fn at_tail(mut file: File, lines: Option<u64>) -> io::Result<File> {
    let Some(mut lines) = lines else {
        return Ok(file);
    };
    let end = file.seek(SeekFrom::End(0))?;
    let mut start = end;
    while start > 0 && lines > 0 {
        let from = start.saturating_sub(CHUNK);
        let mut block = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        (&file).take(start - from).read_to_end(&mut block)?;
        start = from;
        let breaks = block.iter().enumerate().rev();
        let begins = breaks
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(place, _)| from + place as u64 + 1)
            // A line break at the end of the file begins no line.
            .filter(|after| *after < end);
        for after in begins {
            lines -= 1;
            if lines == 0 {
                start = after;
                break;
            }
        }
    }
    file.seek(SeekFrom::Start(start))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn tail(text: &str, lines: u64) -> String {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut found = String::new();
        at_tail(file, Some(lines))
            .unwrap()
            .read_to_string(&mut found)
            .unwrap();
        found
    }

    #[test]
    fn the_tail_begins_at_the_last_lines() {
        let text = "one\ntwo\nthree\n";
        assert_eq!(tail(text, 1), "three\n");
        assert_eq!(tail(text, 2), "two\nthree\n");
        assert_eq!(tail(text, 9), text);
        assert_eq!(tail(text, 0), "");
        assert_eq!(tail("one\ntwo", 1), "two");
        assert_eq!(tail("", 1), "");
    }

    #[test]
    fn a_line_longer_than_a_chunk_is_read_whole() {
        let long = "x".repeat(100_000);
        assert_eq!(
            tail(&format!("first\n{long}\nlast\n"), 2),
            format!("{long}\nlast\n")
        );
    }
}
