//! Logs in the format of the CRI: `<time> <stream> <tag> <content>`. A line that the runtime has written in parts has
//! the tag `P` in all parts but the last, which has `F`.

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::unfold;
use jiff::Timestamp;

use crate::Error;
use crate::log::{Log, LogOptions};

/// Maximum length of a line that has not ended yet. Runtimes write lines of at most 16 KiB.
const MAX_LINE: usize = 1 << 20;

/// Returns the output that a log has, in the order of writing.
pub fn decoded(log: Log, options: &LogOptions) -> Log {
    let decoder = Decoder {
        since: options.since.unwrap_or(i64::MIN),
        timestamps: options.timestamps,
        begins: true,
        rest: BytesMut::new(),
    };
    let pieces = unfold((log, decoder), |(mut log, mut decoder)| async move {
        loop {
            let piece = match log.next().await? {
                Ok(piece) => decoder.decode(&piece),
                Err(error) => return Some((Err::<Bytes, Error>(error), (log, decoder))),
            };
            if !piece.is_empty() {
                return Some((Ok(piece.into()), (log, decoder)));
            }
        }
    });
    pieces.boxed()
}

/// Decodes the chunks of a log, which may end within lines.
struct Decoder {
    /// Seconds since the epoch before which lines are left out.
    since: i64,
    timestamps: bool,
    /// Whether the next part begins a line.
    begins: bool,
    /// The start of a line whose end is not known yet.
    rest: BytesMut,
}

impl Decoder {
    fn decode(&mut self, chunk: &[u8]) -> Vec<u8> {
        self.rest.extend_from_slice(chunk);
        let mut output = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line = self.rest.split_to(end.saturating_add(1));
            self.line(&line, &mut output);
        }
        if self.rest.len() > MAX_LINE {
            // Not a line of any runtime.
            output.extend_from_slice(&self.rest.split());
        }
        output
    }

    /// Adds the content of a line. One that is malformed is left out, as the kubelet does.
    fn line(&mut self, line: &[u8], output: &mut Vec<u8>) {
        let Some(parsed) = parse(line) else {
            return;
        };
        let begins = std::mem::replace(&mut self.begins, !parsed.is_partial);
        let is_wanted = || {
            let time = std::str::from_utf8(parsed.time).ok()?.parse::<Timestamp>();
            Some(time.ok()?.as_second() >= self.since)
        };
        if self.since != i64::MIN && is_wanted() != Some(true) {
            return;
        }
        if self.timestamps && begins {
            output.extend_from_slice(parsed.time);
            output.push(b' ');
        }
        let content = match parsed.is_partial {
            true => parsed.content.strip_suffix(b"\n").unwrap_or(parsed.content),
            false => parsed.content,
        };
        output.extend_from_slice(content);
    }
}

/// A line of a log.
struct Line<'a> {
    time: &'a [u8],
    is_partial: bool,
    /// The content with the line break.
    content: &'a [u8],
}

fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut fields = line.splitn(4, |byte| *byte == b' ');
    let (time, _stream, tags) = (fields.next()?, fields.next()?, fields.next()?);
    // Further tags may follow after colons.
    let tag = tags.split(|byte| *byte == b':').next()?;
    Some(Line {
        time,
        is_partial: tag == b"P",
        content: fields.next()?,
    })
}

#[cfg(test)]
mod tests {
    use futures::{TryStreamExt as _, stream};

    use super::*;

    const LOG: &str = "2026-11-29T05:00:00.000000001Z stdout F one\n\
        2026-11-29T05:00:01.5Z stderr P tw\n\
        2026-11-29T05:00:01.6Z stdout P o and\n\
        2026-11-29T05:00:01.7Z stdout F  a half\n\
        malformed\n\
        2026-11-29T05:00:02Z stdout F:x three words here\n";

    async fn read(size: usize, options: &LogOptions) -> String {
        let pieces: Vec<_> = LOG
            .as_bytes()
            .chunks(size)
            .map(Bytes::from_static)
            .collect();
        let log = stream::iter(pieces.into_iter().map(Ok)).boxed();
        let pieces: Vec<_> = decoded(log, options).try_collect().await.unwrap();
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[tokio::test]
    async fn parts_of_a_line_are_put_together_however_the_log_is_read() {
        for size in [1, 7, 1000] {
            let text = read(size, &LogOptions::default()).await;
            assert_eq!(text, "one\ntwo and a half\nthree words here\n", "{size}");
        }
    }

    #[tokio::test]
    async fn a_line_in_parts_has_one_timestamp() {
        let options = LogOptions {
            timestamps: true,
            since: Some(
                "2026-11-29T05:00:01Z"
                    .parse::<Timestamp>()
                    .unwrap()
                    .as_second(),
            ),
            ..LogOptions::default()
        };
        let expected =
            "2026-11-29T05:00:01.5Z two and a half\n2026-11-29T05:00:02Z three words here\n";
        assert_eq!(read(1000, &options).await, expected);
    }

    #[tokio::test]
    async fn what_is_no_line_is_bounded() {
        let piece = || Ok(Bytes::from(vec![b'x'; 1 << 19]));
        let log = stream::iter([piece(), piece(), piece()]).boxed();
        let pieces: Vec<_> = decoded(log, &LogOptions::default())
            .try_collect()
            .await
            .unwrap();
        assert_eq!(pieces.concat().len(), 3 << 19);
    }
}
