//! The text form of certificates (RFC 7468).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use x509_parser::certificate::X509Certificate;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;

/// The length of a line.
const LINE: usize = 64;

/// Writes bytes as a block with a label.
pub(crate) fn write(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let mut block = format!("-----BEGIN {label}-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        block.push_str(line);
        block.push('\n');
        rest = after;
    }
    block.push_str(&format!("-----END {label}-----\n"));
    block
}

/// Returns the bytes of the first block with a label.
pub(crate) fn read(label: &str, text: &[u8]) -> Option<Vec<u8>> {
    let mut blocks = Pem::iter_from_buffer(text).map_while(Result::ok);
    let block = blocks.find(|block| block.label == label)?;
    Some(block.contents)
}

/// Returns the time at which the first certificate expires.
pub(crate) fn expiry(text: &[u8]) -> Option<Timestamp> {
    let der = read("CERTIFICATE", text)?;
    let (_, certificate) = X509Certificate::from_der(&der).ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_as_it_was_written() {
        for length in [0, 1, 47, 48, 49, 200] {
            let bytes = vec![7; length];
            let text = write("CERTIFICATE", &bytes);
            assert!(text.lines().all(|line| line.len() <= LINE));
            assert_eq!(read("KEY", text.as_bytes()), None);
            if length > 0 {
                assert_eq!(read("CERTIFICATE", text.as_bytes()), Some(bytes));
            }
        }
    }
}
