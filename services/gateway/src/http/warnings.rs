//! `Warning` headers, which kubectl prints.

use std::collections::HashSet;

use http::HeaderValue;

/// The length of all texts together, in characters, above which they are shortened, as upstream's.
const MAX: usize = 4 << 10;
/// The length of a text that is shortened.
const SHORT: usize = 256;

/// Returns the headers for some texts, each once. If they are long, they are shortened, and those that are too many are
/// left out.
pub(super) fn headers(texts: &[String]) -> Vec<HeaderValue> {
    let mut seen = HashSet::new();
    let texts = texts.iter().map(String::as_str);
    let texts = texts.filter(|text| !text.is_empty() && seen.insert(*text));
    let texts: Vec<_> = texts.collect();
    let length = |text: &str| text.chars().count();
    if texts.iter().map(|text| length(text)).sum::<usize>() <= MAX {
        return texts.into_iter().filter_map(header).collect();
    }
    let mut written = 0;
    let short = texts.into_iter().map_while(|text| {
        let room = written < MAX;
        let text: String = text.chars().take(SHORT).collect();
        written += length(&text);
        room.then_some(text)
    });
    short.filter_map(|text| header(&text)).collect()
}

/// Returns the value of a `Warning` header; `None` if a header cannot have the text.
pub(super) fn header(text: &str) -> Option<HeaderValue> {
    format!("299 - {text:?}").try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(headers: &[HeaderValue]) -> Vec<String> {
        let texts = headers.iter().map(|header| header.to_str().unwrap());
        texts
            .map(|text| text.trim_start_matches("299 - ").to_owned())
            .collect()
    }

    #[test]
    fn a_text_is_quoted_and_sent_once() {
        let given = ["a", "", r#"say "b\c""#, "a", "two\nlines"].map(str::to_owned);
        let expected = [r#""a""#, r#""say \"b\\c\"""#, r#""two\nlines""#];
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
}
