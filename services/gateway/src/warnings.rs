//! The warnings of a response: `Warning` headers, which kubectl prints, and the metadata of calls.

use std::collections::HashSet;
use std::iter;

use http::header::{Entry, HeaderMap, HeaderValue, WARNING};
use tonic::metadata::{Ascii, MetadataMap, MetadataValue};

/// The length of all texts together, in characters, above which they are shortened, as upstream's.
const MAX: usize = 4 << 10;
/// The length of a text that is shortened.
const SHORT: usize = 256;
/// The name of the metadata.
const METADATA: &str = "warning";
/// The largest size of all warnings in metadata, in bytes: clients accept 8 KiB of metadata by default.
const METADATA_MAX: usize = 6 << 10;
/// The size of an entry besides its value, as HTTP/2 counts it.
const ENTRY: usize = 32 + METADATA.len();

/// Returns the headers for some texts, each once. If they are long, they are shortened, and those that are too many are
/// left out.
pub(crate) fn headers(texts: &[String]) -> Vec<HeaderValue> {
    let values = values(texts).into_iter();
    values.filter_map(|value| value.try_into().ok()).collect()
}

/// Adds some texts to the metadata of a response, as [`headers`] has them, except that what is not ASCII is encoded as
/// in `grpc-message`.
pub(crate) fn add_to(metadata: &mut MetadataMap, texts: &[String]) {
    let mut size = 0;
    for value in values(texts).iter().map(|value| percent_encoded(value)) {
        size += ENTRY + value.len();
        if size > METADATA_MAX {
            return;
        }
        if let Ok(value) = MetadataValue::<Ascii>::try_from(value) {
            metadata.append(METADATA, value);
        }
    }
}

/// Adds a header before the `Warning` headers of a response.
pub(crate) fn put_first(headers: &mut HeaderMap, first: HeaderValue) {
    let others: Vec<_> = match headers.entry(WARNING) {
        Entry::Occupied(found) => found.remove_entry_mult().1.collect(),
        Entry::Vacant(_) => Vec::new(),
    };
    for warning in iter::once(first).chain(others) {
        headers.append(WARNING, warning);
    }
}

/// Returns the `Warning` header for a text.
pub(crate) fn header(text: &str) -> Option<HeaderValue> {
    value(text).try_into().ok()
}

fn value(text: &str) -> String {
    let mut value = String::from("299 - \"");
    for character in text.chars() {
        match character {
            '"' | '\\' => value.extend(['\\', character]),
            // A header cannot have them.
            control if control.is_control() => value.push(' '),
            other => value.push(other),
        }
    }
    value.push('"');
    value
}

fn values(texts: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    let texts = texts.iter().map(String::as_str);
    let texts = texts.filter(|text| !text.is_empty() && seen.insert(*text));
    let texts: Vec<_> = texts.collect();
    let length = |text: &str| text.chars().count();
    if texts.iter().map(|text| length(text)).sum::<usize>() <= MAX {
        return texts.into_iter().map(value).collect();
    }
    let mut written = 0;
    let short = texts.into_iter().map_while(|text| {
        let room = written < MAX;
        let text: String = text.chars().take(SHORT).collect();
        written += length(&text);
        room.then_some(text)
    });
    short.map(|text| value(&text)).collect()
}

fn percent_encoded(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(headers: &[HeaderValue]) -> Vec<String> {
        let texts = headers.iter().map(|header| header.as_bytes());
        let texts = texts.map(|text| String::from_utf8(text.to_owned()).unwrap());
        texts
            .map(|text| text.trim_start_matches("299 - ").to_owned())
            .collect()
    }

    #[test]
    fn a_text_is_quoted_and_sent_once() {
        let given = ["a", "", r#"say "b\c""#, "a", "two\nlines", "é"].map(str::to_owned);
        let expected = [r#""a""#, r#""say \"b\\c\"""#, r#""two lines""#, r#""é""#];
        assert_eq!(texts(&headers(&given)), expected);
    }

    #[test]
    fn long_texts_are_shortened_only_if_all_together_are_too_long() {
        let long = |mark: char| mark.to_string().repeat(3000);
        let one = texts(&headers(&[long('a')]));
        assert_eq!(one[0].len(), 3002);
        let two = texts(&headers(&[long('a'), long('b')]));
        assert_eq!(
            two,
            ["a", "b"].map(|mark| format!("{:?}", mark.repeat(SHORT)))
        );
        let many: Vec<_> = (0..100).map(|index| format!("{index:0>300}")).collect();
        assert_eq!(headers(&many).len(), MAX / SHORT);
    }

    #[test]
    fn metadata_is_ascii_and_has_an_end() {
        let mut metadata = MetadataMap::new();
        add_to(&mut metadata, &["100 % é".to_owned(), "a".to_owned()]);
        let found: Vec<_> = metadata.get_all(METADATA).iter().collect();
        assert_eq!(found, [r#"299 - "100 %25 %C3%A9""#, r#"299 - "a""#]);
        let mut metadata = MetadataMap::new();
        let many: Vec<_> = (0..1000).map(|index| index.to_string()).collect();
        add_to(&mut metadata, &many);
        let found = metadata.get_all(METADATA).iter();
        let sizes = found.map(|value| ENTRY + value.as_bytes().len());
        assert!((METADATA_MAX - 100..METADATA_MAX).contains(&sizes.sum::<usize>()));
    }
}
