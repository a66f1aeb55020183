//! Environment variables from files of volumes, `valueFrom.fileKeyRef`, in the kubelet's subset of the syntax of
//! shells.
//!
//! ```text
//! NAME='value, which may have several lines'  # a comment
//! ```

use std::collections::HashMap;

use setpoint_proto::core::{Container, FileKeySelector};

/// Maximum length of a line, as the kubelet's.
const MAX_LINE: usize = 64 << 10;
const BLANK: [char; 2] = [' ', '\t'];

/// The files that the variables of a container refer to, by volume and path; `None` for one that cannot be read.
pub type EnvFiles = HashMap<(String, String), Option<Vec<u8>>>;

/// Returns the volumes and paths of the files that a container refers to.
pub fn references(container: &Container) -> Vec<(String, String)> {
    let sources = container
        .env
        .iter()
        .filter_map(|var| var.value_from.as_ref());
    let selectors = sources.filter_map(|source| source.file_key_ref.as_ref());
    selectors.map(reference).collect()
}

fn reference(selector: &FileKeySelector) -> (String, String) {
    (selector.volume_name.clone(), selector.path.clone())
}

/// Returns the value of a variable; `None` if its key is missing and optional.
///
/// # Errors
/// The kubelet's message, if the file cannot be read, or has no such key.
pub fn value(files: &EnvFiles, selector: &FileKeySelector) -> Result<Option<String>, String> {
    let file = files.get(&reference(selector)).and_then(Option::as_deref);
    let text = file.map(String::from_utf8_lossy);
    let parsed = text.and_then(|text| parse(&text, &selector.key));
    let value = parsed.ok_or("couldn't parse env file")?;
    match (value.is_empty(), selector.optional == Some(true)) {
        (false, _) => Ok(Some(value)),
        (true, true) => Ok(None),
        (true, false) => {
            let FileKeySelector { key, path, .. } = selector;
            Err(format!(
                "environment variable key {key:?} not found in file {path:?}"
            ))
        }
    }
}

/// Returns the value of a key, empty if there is none; `None` if a line before it is not valid.
fn parse(text: &str, key: &str) -> Option<String> {
    let mut lines = text
        .lines()
        .map(|line| Some(line).filter(|line| line.len() < MAX_LINE));
    while let Some(line) = lines.next() {
        let line = line?.trim_start_matches(BLANK);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, value) = line.split_once('=')?;
        if name.is_empty() || name.ends_with(BLANK) {
            return None;
        }
        // As in a shell, blanks before the value make it empty.
        let value = match value.starts_with(BLANK) {
            true => String::new(),
            false => quoted(value, &mut lines)?,
        };
        if name == key {
            return Some(value);
        }
    }
    Some(String::new())
}

/// Returns a value in single quotes, which goes on in the next lines until its end; `None` if it is not valid.
fn quoted<'a>(value: &'a str, lines: &mut impl Iterator<Item = Option<&'a str>>) -> Option<String> {
    let mut rest = value.strip_prefix('\'')?;
    let mut whole = String::new();
    loop {
        if let Some((end, behind)) = rest.split_once('\'') {
            whole.push_str(end);
            let behind = behind.trim_start_matches(BLANK);
            return (behind.is_empty() || behind.starts_with('#')).then_some(whole);
        }
        whole.push_str(rest);
        whole.push('\n');
        rest = lines.next()??;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selector(key: &str, optional: bool) -> FileKeySelector {
        FileKeySelector {
            volume_name: "config".into(),
            path: "app.env".into(),
            key: key.into(),
            optional: Some(optional),
        }
    }

    /// Checks E9, with the cases of the kubelet's own documentation.
    #[test]
    fn a_value_is_in_single_quotes() {
        let valid = [
            ("A='1'", "1"),
            ("  \t A='1'  # said", "1"),
            ("# A='0'\n\nB='2'\nA='1'", "1"),
            ("A='one\ntwo $X \"three\"\n'\n", "one\ntwo $X \"three\"\n"),
            ("A= '1'", ""),
            ("A=''", ""),
            ("B='A=1'", ""),
            ("", ""),
            ("A='1'\nnonsense", "1"),
        ];
        for (text, value) in valid {
            assert_eq!(parse(text, "A").as_deref(), Some(value), "{text:?}");
        }
        let invalid = [
            "A",
            "A ='1'",
            "='1'",
            "A=1",
            "A=\"1\"",
            "A='1",
            "A='1' 2",
            "nonsense\nA='1'",
        ];
        for text in invalid {
            assert_eq!(parse(text, "A"), None, "{text:?}");
        }
        let long = format!("A='{}'", "x".repeat(MAX_LINE));
        assert_eq!(parse(&long, "A"), None);
    }

    /// Checks E9.
    #[test]
    fn a_key_that_is_missing_is_an_error_unless_it_is_optional() {
        let file = |content: Option<&str>| {
            let content = content.map(|content| content.as_bytes().to_vec());
            EnvFiles::from([(("config".to_owned(), "app.env".to_owned()), content)])
        };
        let found = file(Some("A='1'"));
        assert_eq!(value(&found, &selector("A", false)), Ok(Some("1".into())));
        assert_eq!(value(&found, &selector("B", true)), Ok(None));
        let missing = "environment variable key \"B\" not found in file \"app.env\"";
        assert_eq!(value(&found, &selector("B", false)), Err(missing.into()));
        for broken in [file(None), file(Some("A")), EnvFiles::new()] {
            let refused = value(&broken, &selector("A", true));
            assert_eq!(refused, Err("couldn't parse env file".into()));
        }
    }
}
