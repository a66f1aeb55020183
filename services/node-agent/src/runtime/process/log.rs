//! What a container wrote into its file.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::try_unfold;
use tokio::io::AsyncReadExt as _;

use super::lost;
use crate::runtime::Error;
use crate::runtime::log::{Log, LogOptions};

/// How often a file that is followed is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How much is read at once.
const PIECE: u64 = 32 << 10;

/// Reads the file from where it was asked for to its end, or, when followed, until its container is `over`.
pub fn read(
    name: &str,
    path: PathBuf,
    options: &LogOptions,
    over: impl Fn() -> bool + Send + Sync + 'static,
) -> Result<Log, Error> {
    if options.timestamps || options.since.is_some() {
        let message = "the process runtime does not note when a line was written";
        return Err(Error::Unsupported(message.to_owned()));
    }
    let name = name.to_owned();
    let file = File::open(&path).and_then(|file| at_tail(file, options.tail));
    let file = file.map_err(|source| lost(&name, source))?;
    let file = tokio::fs::File::from_std(file);
    let (file, follow) = (Newest { path, file }, options.follow);
    let pieces = try_unfold((file, over), move |(mut file, over)| {
        let name = name.clone();
        async move {
            let piece = next(&mut file, &over, follow).await;
            let piece = piece.map_err(|source| lost(name, source))?;
            Ok(piece.map(|piece| (piece, (file, over))))
        }
    });
    Ok(pieces.boxed())
}

async fn next(
    log: &mut Newest,
    over: &(impl Fn() -> bool + Sync),
    follow: bool,
) -> io::Result<Option<Bytes>> {
    loop {
        // Asked before the read: what was written before the end is still read.
        let ended = !follow || over();
        let mut piece = Vec::new();
        if (&mut log.file).take(PIECE).read_to_end(&mut piece).await? > 0 {
            return Ok(Some(piece.into()));
        }
        if log.has_moved_on().await? {
            continue;
        }
        if ended {
            return Ok(None);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The file that a container writes to, at the place where it is read.
struct Newest {
    path: PathBuf,
    file: tokio::fs::File,
}

impl Newest {
    /// Goes on with another file if the one that was read has made way for it. As with the kubelet, nothing is read of
    /// files that came and went since the last look.
    async fn has_moved_on(&mut self) -> io::Result<bool> {
        let newest = tokio::fs::File::open(&self.path).await?;
        let (old, new) = (self.file.metadata().await?, newest.metadata().await?);
        let moved = (old.dev(), old.ino()) != (new.dev(), new.ino());
        if moved {
            self.file = newest;
        }
        Ok(moved)
    }
}

/// The file, where its last lines begin.
fn at_tail(mut file: File, lines: Option<u64>) -> io::Result<File> {
    let Some(mut lines) = lines else {
        return Ok(file);
    };
    let end = file.seek(SeekFrom::End(0))?;
    let mut start = end;
    while start > 0 && lines > 0 {
        let from = start.saturating_sub(PIECE);
        let mut block = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        (&file).take(start - from).read_to_end(&mut block)?;
        start = from;
        let breaks = block.iter().enumerate().rev();
        let begins = breaks
            .filter(|(_, byte)| **byte == b'\n')
            .map(|(place, _)| from + place as u64 + 1)
            // The break after the last line begins no line.
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
    fn the_last_lines_are_found_from_the_end() {
        let text = "one\ntwo\nthree\n";
        assert_eq!(tail(text, 1), "three\n");
        assert_eq!(tail(text, 2), "two\nthree\n");
        assert_eq!(tail(text, 9), text);
        assert_eq!(tail(text, 0), "");
        assert_eq!(tail("one\ntwo", 1), "two");
        assert_eq!(tail("", 1), "");
    }

    #[test]
    fn lines_longer_than_a_block_are_whole() {
        let long = "x".repeat(100_000);
        assert_eq!(
            tail(&format!("first\n{long}\nlast\n"), 2),
            format!("{long}\nlast\n")
        );
    }
}
