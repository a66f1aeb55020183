//! Paths to fields of a schema: `.spec.names['a.b']`.

use setpoint_cel::{AdditionalProperties, Node};

/// Finds the field that a path leads to. Returns the path as errors write it.
///
/// # Errors
///
/// Returns why the path is not valid for the schema.
pub(crate) fn resolve(path: &str, node: &Node) -> Result<String, String> {
    let mut walker = Walker {
        rest: path,
        node: Some(node),
        out: String::new(),
    };
    while !walker.rest.is_empty() {
        walker.step()?;
    }
    Ok(walker.out)
}

struct Walker<'a> {
    rest: &'a str,
    /// None below values whose schema is not known.
    node: Option<&'a Node>,
    out: String,
}

impl Walker<'_> {
    fn step(&mut self) -> Result<(), String> {
        if let Some(rest) = self.rest.strip_prefix('.') {
            let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
            let (name, rest) = rest.split_at(end);
            self.rest = rest;
            if name.is_empty() && rest.is_empty() {
                return Err("unexpected end of JSON path".into());
            }
            return self.enter(name);
        }
        let Some(rest) = self.rest.strip_prefix('[') else {
            let end = self
                .rest
                .find(['.', '[', ']'])
                .unwrap_or(self.rest.len())
                .max(1);
            let found = self.rest.get(..end).unwrap_or(self.rest);
            return Err(format!("expected [ or . but got: {found}"));
        };
        let (name, rest) = quoted(rest)?;
        let Some(rest) = rest.strip_prefix(']') else {
            return Err(match rest.is_empty() {
                true => "unexpected end of JSON path".into(),
                false => format!("expected ] but got {rest}"),
            });
        };
        self.rest = rest;
        self.enter(&name)
    }

    fn enter(&mut self, name: &str) -> Result<(), String> {
        let invalid = || "does not refer to a valid field".to_owned();
        let node = self.node.ok_or_else(invalid)?;
        if !node.properties.is_empty() {
            self.node = Some(node.properties.get(name).ok_or_else(invalid)?);
            if !self.out.is_empty() {
                self.out.push('.');
            }
            self.out.push_str(name);
            return Ok(());
        }
        self.node = match &node.additional_properties {
            None => return Err(invalid()),
            Some(AdditionalProperties::Allowed(_)) => None,
            Some(AdditionalProperties::Schema(values)) => Some(values),
        };
        self.out.push_str(&format!("[{name}]"));
        Ok(())
    }
}

/// Reads a string in single quotes. Returns it and the rest.
fn quoted(text: &str) -> Result<(String, &str), String> {
    let expected = || format!("expected single quoted string but got {text}");
    let inside = text.strip_prefix('\'').ok_or_else(expected)?;
    let mut out = String::new();
    let mut letters = inside.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' => return Ok((out, &inside[at + 1..])),
            '\\' => out.push(unescape(letters.next().map(|(_, letter)| letter))?),
            other => out.push(other),
        }
    }
    Err(expected())
}

fn unescape(letter: Option<char>) -> Result<char, String> {
    Ok(match letter {
        Some('a') => '\x07',
        Some('b') => '\x08',
        Some('f') => '\x0c',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('v') => '\x0b',
        Some(same @ ('\'' | '\\')) => same,
        other => {
            let letter = other.map(String::from).unwrap_or_default();
            return Err(format!(
                "invalid string literal: invalid escape char \\{letter}"
            ));
        }
    })
}
