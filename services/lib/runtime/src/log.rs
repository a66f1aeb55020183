//! Streams of container logs.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::Error;

/// Chunks of arbitrary length, oldest first.
pub type Log = BoxStream<'static, Result<Bytes, Error>>;

/// Selects a part of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Keep streaming until the container ends.
    pub follow: bool,
    /// Prefix each line with its timestamp.
    pub timestamps: bool,
    /// Maximum number of lines, counted from the end.
    pub tail: Option<u64>,
    /// Only lines written since then, in seconds since the Unix epoch.
    pub since: Option<i64>,
}

/// Truncates a log after `limit` bytes.
pub fn limited(log: Log, limit: u64) -> Log {
    let cut = log.scan(limit, |left, piece| {
        let cut = match piece {
            _ if *left == 0 => None,
            Ok(bytes) => {
                let end = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                *left -= end as u64;
                Some(Ok(bytes.slice(..end)))
            }
            failed => Some(failed),
        };
        std::future::ready(cut)
    });
    cut.boxed()
}

#[cfg(test)]
mod tests {
    use futures::{TryStreamExt as _, stream};

    use super::*;

    async fn first(limit: u64) -> String {
        let pieces = ["one\n", "two\n"].map(|text| Ok(Bytes::from(text)));
        let pieces = limited(stream::iter(pieces).boxed(), limit);
        let pieces: Vec<_> = pieces.try_collect().await.unwrap();
        String::from_utf8(pieces.concat()).unwrap()
    }

    #[tokio::test]
    async fn a_limit_truncates_within_a_chunk() {
        assert_eq!(first(6).await, "one\ntw");
        assert_eq!(first(4).await, "one\n");
        assert_eq!(first(100).await, "one\ntwo\n");
    }
}
