//! The text form of certificates (RFC 7468).

use jiff::Timestamp;
use x509_parser::certificate::X509Certificate;
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;

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
    fn the_first_block_with_the_label_is_read() {
        let block = |label: &str, text: &str| {
            format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
        };
        let blocks = [block("KEY", "AQEB"), block("CERTIFICATE", "BwcH")].concat();
        let more = [blocks.as_str(), &block("CERTIFICATE", "CAgI")].concat();
        for text in [&blocks, &more] {
            assert_eq!(read("CERTIFICATE", text.as_bytes()), Some(vec![7; 3]));
        }
        assert_eq!(read("CERTIFICATE REQUEST", more.as_bytes()), None);
    }
}
