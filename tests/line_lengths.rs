//! Lines of code, comments and documents end at 120 columns.

use std::path::Path;

use super::documents::{files, read};

/// The number of columns.
const WIDTH: usize = 120;

/// Folders with files that are not written by hand: inputs of fuzz targets.
const SKIPPED: &[&str] = &["tests/fuzz/inputs"];

/// A kind of text, by the rules of what may be wider.
#[derive(Clone, Copy, PartialEq)]
enum Text {
    Rust,
    Markdown,
    /// `.proto`, `.toml`, and scripts, whose comments begin with `#` or `//`.
    Other,
}

/// Returns the kind of a file's text; `None` for files that are not checked.
fn text_of(path: &Path) -> Option<Text> {
    if SKIPPED.iter().any(|folder| path.starts_with(folder)) {
        return None;
    }
    match path.extension().map(|end| end.to_str().unwrap_or_default()) {
        Some("rs") => Some(Text::Rust),
        Some("md") => Some(Text::Markdown),
        Some("proto" | "toml" | "py" | "sh") => Some(Text::Other),
        Some(_) => None,
        None => is_script(path).then_some(Text::Other),
    }
}

fn is_script(path: &Path) -> bool {
    let begins = std::fs::read(super::documents::root().join(path));
    begins.is_ok_and(|bytes| bytes.starts_with(b"#!"))
}

/// Returns the text of a comment; `None` if the line is none, or has code before it.
fn comment(line: &str, text: Text) -> Option<&str> {
    let line = line.trim_start();
    match text {
        Text::Rust => line
            .strip_prefix("//")
            .map(|rest| rest.trim_start_matches(['/', '!'])),
        Text::Markdown => Some(line),
        Text::Other => line.strip_prefix('#').or_else(|| line.strip_prefix("//")),
    }
}

/// Returns whether a text has a part that nothing can cut: a URL, or code.
fn has_long_word(text: &str) -> bool {
    let is_long = |part: &str| part.chars().count() > WIDTH / 2;
    text.split_whitespace().any(is_long) || text.split('`').skip(1).step_by(2).any(is_long)
}

/// Returns the width of a line of code without the texts of its literals, which formatting does not cut.
fn width_without_literals(line: &str) -> usize {
    let mut width = 0;
    let mut rest = line;
    while let Some(at) = rest.find('"') {
        let hashes = rest[..at]
            .chars()
            .rev()
            .take_while(|char| *char == '#')
            .count();
        let is_raw = rest[..at - hashes].ends_with('r');
        width += rest[..at].chars().count();
        let literal = &rest[at + 1..];
        let end = if is_raw {
            raw_end(literal, hashes)
        } else {
            quoted_end(literal)
        };
        rest = &literal[end..];
    }
    width + rest.chars().count()
}

/// Returns the end of a raw literal, or of the line.
fn raw_end(literal: &str, hashes: usize) -> usize {
    let end = format!("\"{}", "#".repeat(hashes));
    literal
        .find(&end)
        .map_or(literal.len(), |at| at + end.len())
}

/// Returns the end of a literal, or of the line.
fn quoted_end(literal: &str) -> usize {
    let mut escaped = false;
    for (at, char) in literal.char_indices() {
        if char == '"' && !escaped {
            return at + 1;
        }
        escaped = char == '\\' && !escaped;
    }
    literal.len()
}

/// Returns the numbers of the lines that are too wide. Tables and code blocks may be wider, in comments, too,
/// and so may the lines of a literal.
fn too_wide(lines: &str, text: Text) -> Vec<usize> {
    let mut fenced = false;
    let mut literal = false;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(lines.lines()) {
        let words = comment(line, text).filter(|_| !literal);
        fenced ^= words.is_some_and(|words| words.trim_start().starts_with("```"));
        let is_wide = line.chars().count() > WIDTH;
        if is_wide && !literal && !may_be_wide(line, words, fenced) {
            found.push(number);
        }
        literal ^= text != Text::Markdown && words.is_none() && opens_literal(line);
    }
    found
}

/// Returns whether a line is a row of a table in a test.
fn is_row(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('(') && line.ends_with("),")
}

fn may_be_wide(line: &str, words: Option<&str>, fenced: bool) -> bool {
    match words {
        Some(words) => fenced || words.trim_start().starts_with('|') || has_long_word(words),
        None => is_row(line) || width_without_literals(line) <= WIDTH,
    }
}

/// Returns whether a literal begins or ends in this line, and ends or began in another one.
fn opens_literal(line: &str) -> bool {
    let line = line
        .replace("\\\\", "")
        .replace("\\\"", "")
        .replace("'\"'", "");
    line.matches('"').count() % 2 == 1
}

#[test]
fn lines_end_at_120_columns() {
    let mut wide = Vec::new();
    for path in files() {
        let Some(text) = text_of(&path) else { continue };
        let numbers = too_wide(&read(&path), text);
        wide.extend(
            numbers
                .iter()
                .map(|number| format!("{}:{number}", path.display())),
        );
    }
    assert!(
        wide.is_empty(),
        "wider than {WIDTH} columns:\n{}",
        wide.join("\n")
    );
}

#[test]
fn only_what_cannot_be_cut_may_be_wide() {
    let word = "word ".repeat(30);
    let literal = format!("    let text = \"{word}\";");
    let code = format!("    call({});", "value, ".repeat(20));
    for (line, text) in [
        (format!("// {word}"), Text::Rust),
        (format!("    /// {word}"), Text::Rust),
        (code, Text::Rust),
        (word.clone(), Text::Markdown),
        (format!("# {word}"), Text::Other),
    ] {
        assert_eq!(too_wide(&line, text), [1], "{line}");
    }
    for (line, text) in [
        (literal, Text::Rust),
        (format!("/// <https://{}>", "long".repeat(40)), Text::Rust),
        (format!("//! ```text\n//! {word}\n//! ```"), Text::Rust),
        (format!("let a = \"\n{word}\n\";"), Text::Rust),
        (
            format!("    let text = r#\"{{\"a\": \"{word}\"}}\"#;"),
            Text::Rust,
        ),
        (
            format!("    (\"name\", {}),", "value, ".repeat(20)),
            Text::Rust,
        ),
        (format!("| {word} |"), Text::Markdown),
        (format!("```\n{word}\n```"), Text::Markdown),
    ] {
        assert!(too_wide(&line, text).is_empty(), "{line}");
    }
}
