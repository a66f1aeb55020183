//! The host that a client has asked.

use http::header::HOST;
use http::{HeaderMap, Uri};

/// Returns the host, with its port if the client has named one: of the URI, as HTTP/2 has it, or of the header.
pub(super) fn host<'r>(uri: &'r Uri, headers: &'r HeaderMap) -> Option<&'r str> {
    let header = || headers.get(HOST)?.to_str().ok();
    uri.authority()
        .map(|authority| authority.as_str())
        .or_else(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_in_the_uri_or_in_the_header() {
        let mut headers = HeaderMap::new();
        let path = Uri::from_static("/api");
        assert_eq!(host(&path, &headers), None);
        headers.insert(HOST, "a:1".parse().unwrap());
        assert_eq!(host(&path, &headers), Some("a:1"));
        assert_eq!(
            host(&Uri::from_static("https://b/api"), &headers),
            Some("b")
        );
    }
}
