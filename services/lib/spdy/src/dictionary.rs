//! The dictionary that headers are compressed with, as the draft of SPDY/3 lists it: names and values with their
//! lengths, and a text.

use std::sync::LazyLock;

/// The dictionary.
pub(super) static DICTIONARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut bytes = Vec::new();
    for word in WORDS {
        let length = u32::try_from(word.len()).unwrap_or_default();
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(word.as_bytes());
    }
    for part in TEXT {
        bytes.extend_from_slice(part.as_bytes());
    }
    bytes
});

#[rustfmt::skip]
const WORDS: [&str; 65] = [
    "options", "head", "post", "put", "delete", "trace", "accept", "accept-charset",
    "accept-encoding", "accept-language", "accept-ranges", "age", "allow", "authorization",
    "cache-control", "connection", "content-base", "content-encoding", "content-language",
    "content-length", "content-location", "content-md5", "content-range", "content-type", "date",
    "etag", "expect", "expires", "from", "host", "if-match", "if-modified-since", "if-none-match",
    "if-range", "if-unmodified-since", "last-modified", "location", "max-forwards", "pragma",
    "proxy-authenticate", "proxy-authorization", "range", "referer", "retry-after", "server", "te",
    "trailer", "transfer-encoding", "upgrade", "user-agent", "vary", "via", "warning",
    "www-authenticate", "method", "get", "status", "200 OK", "version", "HTTP/1.1", "url", "public",
    "set-cookie", "keep-alive", "origin",
];

#[rustfmt::skip]
const TEXT: [&str; 7] = [
    "10010120120220520630030230330430530630740240540640740840941041141241341441541641750250",
    "4505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Reques",
    "t401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemente",
    "d503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon,",
    " Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,appl",
    "ication/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip",
    ",deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends name the dictionary by its checksum (Adler-32).
    #[test]
    fn the_checksum_is_that_of_the_draft() {
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in &*DICTIONARY {
            a = (a + u32::from(*byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        assert_eq!(b << 16 | a, 0xe3c6_a7c2);
    }
}
