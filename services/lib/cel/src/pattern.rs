//! Regular expressions in Go's syntax.

use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

use regex::{Regex, RegexBuilder};

/// The memory of one compiled pattern, in bytes.
pub(crate) const MAX_SIZE: usize = 2 << 20;
/// The longest pattern, in bytes.
const MAX_LENGTH: usize = 16 << 10;

/// A regular expression as declared, compiled.
#[derive(Clone, Debug)]
pub struct Pattern {
    source: String,
    compiled: Regex,
}

impl Pattern {
    /// Compiles a pattern of Go's syntax.
    ///
    /// # Errors
    ///
    /// Returns a description if the pattern is malformed, or too large when compiled.
    pub fn new(source: &str) -> Result<Self, String> {
        Self::within(source, MAX_SIZE)
    }

    /// Compiles a pattern to a program of at most so many bytes.
    pub(crate) fn within(source: &str, size: usize) -> Result<Self, String> {
        if source.len() > MAX_LENGTH {
            return Err(format!("pattern is longer than {MAX_LENGTH} bytes"));
        }
        let compiled = RegexBuilder::new(&translate(source))
            .size_limit(size)
            .dfa_size_limit(MAX_SIZE)
            .build()
            .map_err(|error| describe(source, &error))?;
        let source = source.to_owned();
        Ok(Self { source, compiled })
    }

    /// The pattern as declared.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the first part of the text that matches.
    pub(crate) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.compiled.find(text).map(|found| found.as_str())
    }

    /// Returns the parts of the text that match.
    pub(crate) fn find_all<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.compiled.find_iter(text).map(|found| found.as_str())
    }

    /// Whether some part of the text matches.
    pub fn is_match(&self, text: &str) -> bool {
        self.compiled.is_match(text)
    }
}

/// One line, as Go's errors are.
fn describe(source: &str, error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => {
            format!("error parsing regexp: expression too large: `{source}`")
        }
        other => {
            let text = other.to_string();
            let cause = text.lines().last().unwrap_or_default();
            let cause = cause.strip_prefix("error: ").unwrap_or(cause);
            format!("error parsing regexp: {cause}: `{source}`")
        }
    }
}

/// Rewrites what the two syntaxes read differently: `\d`, `\w` and `\s` are ASCII in Go, a bracket in a class is a
/// character, a brace that counts nothing is one, too, and `\Q…\E` quotes.
fn translate(source: &str) -> String {
    let mut writer = Writer {
        rest: source.chars().peekable(),
        out: String::with_capacity(source.len() * 2),
    };
    while let Some(letter) = writer.rest.next() {
        match letter {
            '\\' => writer.escape(false),
            '[' => writer.class(),
            '{' => writer.brace(),
            other => writer.out.push(other),
        }
    }
    writer.out
}

struct Writer<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
}

impl Writer<'_> {
    fn escape(&mut self, in_class: bool) {
        let Some(letter) = self.rest.next() else {
            return self.out.push('\\');
        };
        let ascii = match letter {
            'd' => "0-9",
            'w' => "0-9A-Za-z_",
            's' => "\\t\\n\\f\\r ",
            'D' => "^0-9",
            'W' => "^0-9A-Za-z_",
            'S' => "^\\t\\n\\f\\r ",
            'Q' => return self.quoted(),
            '0'..='7' => return self.octal(letter),
            'b' if !in_class => return self.out.push_str("(?-u:\\b)"),
            '<' | '>' => return self.out.push(letter),
            other => {
                self.out.push('\\');
                return self.out.push(other);
            }
        };
        match in_class && !ascii.starts_with('^') {
            true => self.out.push_str(ascii),
            false => drop(write!(self.out, "[{ascii}]")),
        }
    }

    /// Two or three digits, or `\0`, are a character; one digit would be a back reference, which neither syntax has.
    fn octal(&mut self, first: char) {
        let mut digits = String::from(first);
        while digits.len() < 3 {
            match self.rest.next_if(|letter| letter.is_digit(8)) {
                Some(digit) => digits.push(digit),
                None => break,
            }
        }
        let code = u32::from_str_radix(&digits, 8).unwrap_or_default();
        match digits.len() > 1 || first == '0' {
            true => drop(write!(self.out, "\\x{{{code:x}}}")),
            false => drop(write!(self.out, "\\{digits}")),
        }
    }

    fn quoted(&mut self) {
        let mut text = String::new();
        while let Some(letter) = self.rest.next() {
            if letter == '\\' && self.rest.next_if_eq(&'E').is_some() {
                break;
            }
            text.push(letter);
        }
        self.out.push_str(&regex::escape(&text));
    }

    fn class(&mut self) {
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        if self.rest.next_if_eq(&']').is_some() {
            self.out.push_str("\\]");
        }
        while let Some(letter) = self.rest.next() {
            match letter {
                ']' => return self.out.push(']'),
                '\\' => self.escape(true),
                '[' if self.rest.peek() == Some(&':') => self.posix(),
                '[' | '&' | '~' => {
                    self.out.push('\\');
                    self.out.push(letter);
                }
                '-' if self.rest.peek() == Some(&'-') => {
                    self.rest.next();
                    self.out.push_str("-\\-");
                }
                other => self.out.push(other),
            }
        }
    }

    /// Copies `[:alpha:]`.
    fn posix(&mut self) {
        self.out.push('[');
        for letter in self.rest.by_ref() {
            self.out.push(letter);
            if letter == ']' {
                return;
            }
        }
    }

    fn brace(&mut self) {
        let inside: String = self
            .rest
            .clone()
            .take_while(|letter| *letter != '}')
            .collect();
        let closed = self.rest.clone().nth(inside.chars().count()) == Some('}');
        if !(closed && is_count(&inside)) {
            self.out.push('\\');
        }
        self.out.push('{');
    }
}

/// Whether braces hold a repetition: `3`, `3,` or `3,5`.
fn is_count(inside: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (from, to) = inside.split_once(',').unwrap_or((inside, ""));
    !from.is_empty() && digits(from) && digits(to)
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn patterns_match_as_in_go() {
        let cases = [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[\w-]+$", "a_b-c", true),
            (r"^[\w-]+$", "é", false),
            (r"^[^\S]$", " ", true),
            (r"^[[a]$", "[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[[:alpha:]]+$", "ab", true),
            (r"^a{2}$", "aa", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^{x}$", "{x}", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"^[a&&b]+$", "&", true),
            (r"^\/a\-b\_$", "/a-b_", true),
            (r"\<x\>", "<x>", true),
            (r"^(?i)ABC$", "abc", true),
            (r"\bcat\b", "a cat", true),
            (r"b", "abc", true),
            (r"^\x41\101$", "AA", true),
        ];
        for (pattern, text, expected) in cases {
            let compiled = Pattern::new(pattern).unwrap();
            assert_eq!(compiled.is_match(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn malformed_and_huge_patterns_are_refused_in_one_line() {
        for pattern in [
            "(",
            "[a",
            "a**?+(",
            r"(?=x)",
            r"(a)\1",
            r"((\pL{1000}){1000}){1000}",
        ] {
            let error = Pattern::new(pattern).expect_err(pattern);
            assert!(error.starts_with("error parsing regexp: "), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
        assert!(Pattern::new(&"a".repeat(20_000)).is_err());
    }
}
