//! What a container wrote, as a runtime hands it out.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use super::Error;

/// Pieces of any length, oldest first.
pub type Log = BoxStream<'static, Result<Bytes, Error>>;

/// Which part of it is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Stay until the container has ended.
    pub follow: bool,
    /// Begin each line with its time.
    pub timestamps: bool,
    /// Only so many lines from the end.
    pub tail: Option<u64>,
    /// Only what was written since, in seconds since 1970.
    pub since: Option<i64>,
}

/// The first bytes of a log.
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
    async fn a_limit_cuts_in_the_middle_of_a_piece() {
        assert_eq!(first(6).await, "one\ntw");
        assert_eq!(first(4).await, "one\n");
        assert_eq!(first(100).await, "one\ntwo\n");
    }
}
