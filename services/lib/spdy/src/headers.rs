//! Blocks of headers, compressed (zlib) with a dictionary and with the blocks before them.

use std::io;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::dictionary::DICTIONARY;

/// The largest block, in bytes.
const LARGEST: usize = 64 << 10;
/// The bytes that are decompressed at once.
const CHUNK: usize = 4 << 10;

/// The headers of a stream. Names are in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Headers(pub Vec<(String, String)>);

impl Headers {
    /// Returns the value of a header; empty if there is none.
    pub(super) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    fn encode(&self) -> Vec<u8> {
        let mut block = length(self.0.len());
        for text in self.0.iter().flat_map(|(name, value)| [name, value]) {
            block.extend(length(text.len()));
            block.extend_from_slice(text.as_bytes());
        }
        block
    }

    fn decode(mut block: &[u8]) -> io::Result<Self> {
        let count = take_length(&mut block)?;
        let mut headers = Vec::new();
        for _ in 0..count {
            let name = take_text(&mut block)?;
            headers.push((name.to_ascii_lowercase(), take_text(&mut block)?));
        }
        Ok(Self(headers))
    }
}

fn length(length: usize) -> Vec<u8> {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    length.to_be_bytes().to_vec()
}

fn take_length(block: &mut &[u8]) -> io::Result<usize> {
    let (length, rest) = block.split_first_chunk().ok_or_else(malformed)?;
    *block = rest;
    usize::try_from(u32::from_be_bytes(*length)).map_err(|_| malformed())
}

fn take_text(block: &mut &[u8]) -> io::Result<String> {
    let length = take_length(block)?;
    let (text, rest) = block.split_at_checked(length).ok_or_else(malformed)?;
    *block = rest;
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed SPDY headers")
}

/// Reads the blocks of a connection, in their order.
pub(super) struct Decoder(Decompress);

impl Default for Decoder {
    fn default() -> Self {
        Self(Decompress::new(true))
    }
}

impl Decoder {
    /// Reads a block.
    ///
    /// # Errors
    /// If it is malformed, or larger than any of Kubernetes.
    pub(super) fn decode(&mut self, mut input: &[u8]) -> io::Result<Headers> {
        let mut block = Vec::new();
        while !input.is_empty() || block.len() == block.capacity() {
            block.reserve(CHUNK);
            let (read, written) = (self.0.total_in(), self.0.total_out());
            let status = self
                .0
                .decompress_vec(input, &mut block, FlushDecompress::Sync);
            let taken = usize::try_from(self.0.total_in() - read).map_err(|_| malformed())?;
            input = input.get(taken..).unwrap_or_default();
            match status {
                Ok(Status::StreamEnd) => return Err(malformed()),
                // Nothing is left, and nothing came of it.
                Ok(_) if taken == 0 && self.0.total_out() == written => break,
                Ok(_) => {}
                Err(error) if error.needs_dictionary().is_some() => {
                    let set = self.0.set_dictionary(&DICTIONARY);
                    set.map_err(|_| malformed())?;
                }
                Err(_) => return Err(malformed()),
            }
            if block.len() > LARGEST {
                return Err(malformed());
            }
        }
        Headers::decode(&block)
    }
}

/// Writes the blocks of a connection, in their order.
pub(super) struct Encoder(Compress);

impl Encoder {
    /// Returns an encoder.
    ///
    /// # Errors
    /// If the dictionary cannot be set.
    pub(super) fn new() -> io::Result<Self> {
        let mut compress = Compress::new(Compression::fast(), true);
        let set = compress.set_dictionary(&DICTIONARY);
        set.map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self(compress))
    }

    /// Returns a block.
    ///
    /// # Errors
    /// If it cannot be compressed.
    pub(super) fn encode(&mut self, headers: &Headers) -> io::Result<Vec<u8>> {
        let block = headers.encode();
        let (mut input, mut out) = (block.as_slice(), Vec::new());
        loop {
            out.reserve(CHUNK);
            let read = self.0.total_in();
            let flushed = self.0.compress_vec(input, &mut out, FlushCompress::Sync);
            flushed.map_err(|error| io::Error::other(error.to_string()))?;
            let taken = usize::try_from(self.0.total_in() - read).unwrap_or_default();
            input = input.get(taken..).unwrap_or_default();
            if input.is_empty() && out.len() < out.capacity() {
                return Ok(out);
            }
        }
    }
}
