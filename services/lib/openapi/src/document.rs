//! A document that is built when it is first requested, and kept only in its compressed form.

use std::io::{self, Write};
use std::sync::OnceLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::gzip::gunzip;

/// Writes a document.
type Build = dyn Fn(&mut dyn Write) -> io::Result<()> + Send + Sync;

/// A document.
pub struct Document {
    build: Box<Build>,
    built: OnceLock<Built>,
}

/// A document after it was built.
pub struct Built {
    gzip: Bytes,
    hash: String,
}

impl Document {
    pub(super) fn new(
        build: impl Fn(&mut dyn Write) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            build: Box::new(build),
            built: OnceLock::new(),
        }
    }

    /// Returns the document if it was built before.
    pub fn if_built(&self) -> Option<&Built> {
        self.built.get()
    }

    /// Returns the document, which is built first if it was not before. That may take a second of CPU.
    pub fn built(&self) -> &Built {
        self.built.get_or_init(|| {
            let mut writer = Writer::default();
            // Writing to memory does not fail; an incomplete document would be found by the tests.
            let _ = (self.build)(&mut writer);
            writer.finish()
        })
    }
}

impl Built {
    /// Returns the document as compressed by gzip.
    pub fn gzip(&self) -> Bytes {
        self.gzip.clone()
    }

    /// Returns the hash of the document in hexadecimal digits.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Decompresses the document.
    ///
    /// # Errors
    /// If it is incomplete.
    pub fn plain(&self) -> io::Result<Bytes> {
        gunzip(&self.gzip)
    }
}

/// Compresses and hashes a document as it is written, so that the whole is never in memory.
struct Writer {
    gzip: GzEncoder<Vec<u8>>,
    hash: Sha256,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            gzip: GzEncoder::new(Vec::new(), Compression::default()),
            hash: Sha256::new(),
        }
    }
}

impl Writer {
    fn finish(self) -> Built {
        let mut gzip = self.gzip.finish().unwrap_or_default();
        gzip.shrink_to_fit();
        Built {
            gzip: gzip.into(),
            hash: digits(&self.hash.finalize()),
        }
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.gzip.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.gzip.flush()
    }
}

/// Returns bytes in hexadecimal digits.
fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect()
}
