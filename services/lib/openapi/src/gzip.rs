//! Compression of documents in memory.

use std::io::{self, Read as _, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// Compresses bytes.
pub(super) fn gzip(plain: &[u8], level: Compression) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), level);
    encoder.write_all(plain)?;
    let mut small = encoder.finish()?;
    small.shrink_to_fit();
    Ok(small.into())
}

/// Decompresses bytes that [`gzip`] has compressed.
pub(super) fn gunzip(small: &[u8]) -> io::Result<Bytes> {
    let mut plain = Vec::new();
    GzDecoder::new(small).read_to_end(&mut plain)?;
    Ok(plain.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompressed_bytes_are_those_that_were_compressed() {
        let plain = b"abc".repeat(1000);
        let small = gzip(&plain, Compression::best()).unwrap();
        assert!(small.len() < 100);
        assert_eq!(gunzip(&small).unwrap(), plain);
    }
}
