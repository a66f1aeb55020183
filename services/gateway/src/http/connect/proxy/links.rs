//! Rewrites links in HTML pages of backends to the proxy's path.

use std::io::{self, Write as _};
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use flate2::write::MultiGzDecoder;
use futures::stream::{self, Stream};
use futures::{StreamExt as _, TryStreamExt as _};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use lol_html::send::{HtmlRewriter, Settings};
use lol_html::{MemorySettings, element};
use parking_lot::Mutex;

use super::location::Place;

/// The attributes that are rewritten, as upstream's: with the names of their elements.
const ATTRIBUTES: [(&str, &[&str]); 13] = [
    ("action", &["form"]),
    ("cite", &["blockquote", "del", "ins", "q"]),
    ("classid", &["object"]),
    ("codebase", &["applet", "object"]),
    ("data", &["object"]),
    ("formaction", &["button", "input"]),
    ("href", &["a", "area", "base", "link"]),
    ("icon", &["command"]),
    ("longdesc", &["frame", "iframe", "img"]),
    ("manifest", &["html"]),
    ("poster", &["video"]),
    (
        "src",
        &[
            "audio", "embed", "frame", "iframe", "img", "input", "script", "source", "track",
            "video",
        ],
    ),
    ("usemap", &["img", "input", "object"]),
];
/// The bytes of a response that are rewritten at once. Compressed ones become at most some thousand times as many.
const CHUNK: usize = 4 << 10;
/// The memory for the part of a page that is not complete, such as a tag.
const MAX_MEMORY: usize = 1 << 20;

/// The encoding of a page whose links can be rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
}

/// Rewrites the links of a body if the headers say that it is a page in a known encoding. The headers are then changed
/// to those of the rewritten page, which is not compressed.
pub(super) fn rewrite(headers: &mut HeaderMap, body: Body, place: Place) -> Body {
    let Some(encoding) = encoding(headers) else {
        return body;
    };
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
    let pieces = body.into_data_stream().map_err(io::Error::other);
    let pieces = pieces.flat_map(|piece| stream::iter(split(piece)));
    Body::from_stream(rewritten(pieces, encoding, place))
}

/// Returns the encoding of a page; `None` if the response is no page or its encoding is another.
fn encoding(headers: &HeaderMap) -> Option<Encoding> {
    let value = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let media_type = value(CONTENT_TYPE)?.split(';').next().unwrap_or_default();
    if !media_type.trim().eq_ignore_ascii_case("text/html") {
        return None;
    }
    match value(CONTENT_ENCODING).unwrap_or_default() {
        "" | "identity" => Some(Encoding::Identity),
        "gzip" => Some(Encoding::Gzip),
        _ => None,
    }
}

fn split(piece: io::Result<Bytes>) -> Vec<io::Result<Bytes>> {
    match piece {
        Ok(piece) => piece
            .chunks(CHUNK)
            .map(|chunk| Ok(piece.slice_ref(chunk)))
            .collect(),
        error => vec![error],
    }
}

/// Returns the pieces of a page with its links rewritten.
fn rewritten(
    pieces: impl Stream<Item = io::Result<Bytes>> + Unpin + Send,
    encoding: Encoding,
    place: Place,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let state = Some((pieces, Page::new(encoding, place)));
    stream::try_unfold(state, async |state| {
        let Some((mut pieces, mut page)) = state else {
            return Ok(None);
        };
        match pieces.try_next().await? {
            Some(piece) => {
                let written = page.write(&piece)?;
                Ok(Some((written, Some((pieces, page)))))
            }
            None => Ok(Some((page.end()?, None))),
        }
    })
}

/// The receiver of the rewritten bytes.
type Sink = Box<dyn FnMut(&[u8]) + Send>;

/// A page that is being rewritten.
struct Page {
    decoder: Option<MultiGzDecoder<Vec<u8>>>,
    rewriter: HtmlRewriter<'static, Sink>,
    /// The output of the rewriter that is not yet sent.
    written: Arc<Mutex<Vec<u8>>>,
}

impl Page {
    fn new(encoding: Encoding, place: Place) -> Self {
        let written = Arc::new(Mutex::new(Vec::new()));
        let output = Arc::clone(&written);
        let place = Arc::new(place);
        let memory = MemorySettings::new().with_max_allowed_memory_usage(MAX_MEMORY);
        let mut settings = Settings::new_send()
            .with_memory_settings(memory)
            .with_strict(false);
        for (attribute, elements) in ATTRIBUTES {
            for name in elements {
                let place = Arc::clone(&place);
                let handler = element!(format!("{name}[{attribute}]"), move |element| {
                    if let Some(link) = element.get_attribute(attribute) {
                        element.set_attribute(attribute, &place.rewrite(&link))?;
                    }
                    Ok(())
                });
                settings = settings.append_element_content_handler(handler);
            }
        }
        let sink = move |piece: &[u8]| output.lock().extend_from_slice(piece);
        Self {
            decoder: (encoding == Encoding::Gzip).then(|| MultiGzDecoder::new(Vec::new())),
            rewriter: HtmlRewriter::new(settings, Box::new(sink)),
            written,
        }
    }

    /// Returns what is complete with this piece.
    fn write(&mut self, piece: &[u8]) -> io::Result<Bytes> {
        let decoded = match &mut self.decoder {
            Some(decoder) => {
                decoder.write_all(piece)?;
                &std::mem::take(decoder.get_mut())[..]
            }
            None => piece,
        };
        self.rewriter.write(decoded).map_err(io::Error::other)?;
        Ok(std::mem::take(&mut *self.written.lock()).into())
    }

    fn end(mut self) -> io::Result<Bytes> {
        if let Some(decoder) = self.decoder.take() {
            let rest = decoder.finish()?;
            self.rewriter.write(&rest).map_err(io::Error::other)?;
        }
        self.rewriter.end().map_err(io::Error::other)?;
        Ok(std::mem::take(&mut *self.written.lock()).into())
    }
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http::HeaderValue;

    use super::*;

    const PAGE: &str = r#"<!doctype html><p>/x<a HREF="/x?a=b">1</a><a href='y'>2</a><img alt="/z" src="/z.png">
        <form action="http://10.0.0.1:80/f"><script src=/s.js></script><a href="http://example.com/x">3</a>"#;
    const REWRITTEN: &str = r#"<!doctype html><p>/x<a HREF="/p/x?a=b">1</a><a href="y">2</a><img alt="/z" src="/p/z.png">
        <form action="/p/f"><script src="/p/s.js"></script><a href="http://example.com/x">3</a>"#;

    fn headers(media_type: &'static str, encoding: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(CONTENT_LENGTH, HeaderValue::from_static("7"));
        if !encoding.is_empty() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        headers
    }

    /// Returns the body after the rewriting of one that arrives in pieces of `size`.
    async fn read(headers: &mut HeaderMap, content: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let pieces = content
            .chunks(size)
            .map(Bytes::copy_from_slice)
            .map(Ok::<_, io::Error>);
        let pieces: Vec<_> = pieces.collect();
        let place = Place {
            prefix: "/p".into(),
            backend: "10.0.0.1:80".into(),
            own: "localhost:6443".into(),
        };
        let body = rewrite(headers, Body::from_stream(stream::iter(pieces)), place);
        let read = axum::body::to_bytes(body, usize::MAX).await;
        read.map(Vec::from).map_err(io::Error::other)
    }

    fn compressed(content: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[tokio::test]
    async fn links_to_the_backend_lead_to_its_path_however_the_page_is_cut() {
        for size in [1, 7, PAGE.len()] {
            let mut plain = headers("text/html; charset=utf-8", "");
            let read_plain = read(&mut plain, PAGE.as_bytes(), size).await.unwrap();
            assert_eq!(String::from_utf8(read_plain).unwrap(), REWRITTEN);
            assert_eq!(plain.get(CONTENT_LENGTH), None);
            let mut packed = headers("text/html", "gzip");
            let read_packed = read(&mut packed, &compressed(PAGE), size).await.unwrap();
            assert_eq!(String::from_utf8(read_packed).unwrap(), REWRITTEN);
            assert_eq!(packed.get(CONTENT_ENCODING), None);
        }
    }

    #[tokio::test]
    async fn other_responses_stay_as_they_are() {
        for (media_type, encoding) in [("text/plain", ""), ("text/html", "br")] {
            let mut other = headers(media_type, encoding);
            let before = other.clone();
            let content = read(&mut other, PAGE.as_bytes(), 5).await.unwrap();
            assert_eq!(content, PAGE.as_bytes());
            assert_eq!(other, before);
        }
    }

    #[tokio::test]
    async fn a_page_that_is_cut_off_or_has_a_tag_without_end_breaks_the_response() {
        let packed = compressed(PAGE);
        let cut = &packed[..packed.len() - 9];
        assert!(
            read(&mut headers("text/html", "gzip"), cut, 64)
                .await
                .is_err()
        );
        let endless = format!("<a href=\"{}", "x".repeat(2 * MAX_MEMORY));
        let read = read(&mut headers("text/html", ""), endless.as_bytes(), 1 << 16).await;
        assert!(read.is_err());
    }
}
