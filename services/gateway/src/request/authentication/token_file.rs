//! Tokens of a file, which do not change while the process runs (upstream: `--token-auth-file`).
//!
//! Each line has the columns token, name, uid and, if there are any, groups: `31ada4fd,jane,7,"dev,ops"`.

use std::collections::HashMap;
use std::path::Path;
use std::{fs, iter};

use setpoint_kinds::Identity;
use sha2::{Digest as _, Sha256};

/// The digest of a token. Tokens are looked up by it, so that the time that this takes tells nothing about a token.
type Fingerprint = [u8; 32];

/// The tokens of a file, with their users.
#[derive(Clone, Debug, Default)]
pub struct StaticTokens(HashMap<Fingerprint, Identity>);

impl StaticTokens {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read or is malformed.
    pub fn read(file: &Path) -> Result<Self, String> {
        let named = |why: String| format!("token file '{}': {why}", file.display());
        let text = fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
        Self::parse(&text).map_err(named)
    }

    /// Parses the text of a file. Of two lines with the same token the last one counts; one with an empty token counts
    /// for nothing.
    ///
    /// # Errors
    /// If a line has less than three columns, or a quotation mark where none may be.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = HashMap::new();
        for (number, line) in iter::zip(1.., text.lines()) {
            if line.is_empty() {
                continue;
            }
            let columns = columns(line).ok_or_else(|| format!("line {number} is not valid CSV"))?;
            let [token, name, uid, rest @ ..] = columns.as_slice() else {
                let found = columns.len();
                return Err(format!(
                    "line {number} must have at least 3 columns (token, user name, user uid), found {found}"
                ));
            };
            if token.is_empty() {
                tracing::warn!(line = number, "the token file has an empty token");
                continue;
            }
            let user = user(name, uid, rest.first());
            if tokens.insert(fingerprint(token), user).is_some() {
                tracing::warn!(line = number, "the token file has a token twice");
            }
        }
        Ok(Self(tokens))
    }

    /// Returns the user of a token.
    pub(super) fn user(&self, token: &str) -> Option<&Identity> {
        match self.0.is_empty() {
            true => None,
            false => self.0.get(&fingerprint(token)),
        }
    }
}

fn fingerprint(token: &str) -> Fingerprint {
    Sha256::digest(token).into()
}

fn user(name: &str, uid: &str, groups: Option<&String>) -> Identity {
    let groups = groups.map(|groups| groups.split(',').map(str::to_owned).collect());
    Identity {
        name: name.to_owned(),
        uid: uid.to_owned(),
        groups: groups.unwrap_or_default(),
        extra: Default::default(),
    }
}

/// Returns the columns of a line of CSV (RFC 4180); `None` if it is malformed.
fn columns(line: &str) -> Option<Vec<String>> {
    let (mut columns, mut rest) = (Vec::new(), line);
    loop {
        let (column, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted_column(quoted)?,
            None => plain_column(rest)?,
        };
        columns.push(column);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return after.is_empty().then_some(columns),
        }
    }
}

/// Splits off a column without quotation marks.
fn plain_column(text: &str) -> Option<(String, &str)> {
    let (column, rest) = text.split_at(text.find(',').unwrap_or(text.len()));
    (!column.contains('"')).then(|| (column.to_owned(), rest))
}

/// Splits off a column whose quotation mark was read. Two of them within it are one.
fn quoted_column(text: &str) -> Option<(String, &str)> {
    let (mut column, mut rest) = (String::new(), text);
    loop {
        let (part, after) = rest.split_once('"')?;
        column.push_str(part);
        match after.strip_prefix('"') {
            Some(more) => {
                column.push('"');
                rest = more;
            }
            None => return Some((column, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_a_token_and_its_user() {
        let text = "a1,jane,7,\"dev,ops\"\r\n\nb2,\"the \"\"other\"\"\",,ops,ignored\n,nobody,9\nb2,last,8\n";
        let tokens = StaticTokens::parse(text).unwrap();
        let jane = tokens.user("a1").unwrap();
        assert_eq!((jane.name.as_str(), jane.uid.as_str()), ("jane", "7"));
        assert_eq!(jane.groups, ["dev", "ops"]);
        let last = tokens.user("b2").unwrap();
        assert_eq!(last.name, "last");
        assert!(last.groups.is_empty());
        assert_eq!(tokens.user(""), None);
        assert_eq!(tokens.user("a"), None);
        assert_eq!(StaticTokens::default().user("a1"), None);
    }

    #[test]
    fn columns_may_be_quoted() {
        let read = |line: &str| columns(line).map(|columns| columns.join("|"));
        assert_eq!(read("a,\"b,\"\"c\"\"\",").as_deref(), Some("a|b,\"c\"|"));
        for malformed in ["a,b\"c", "a,\"b", "a,\"b\"c"] {
            assert_eq!(read(malformed), None, "{malformed}");
        }
    }

    #[test]
    fn a_file_that_means_nothing_is_refused() {
        let short = StaticTokens::parse("a,b,c\na,b\n").unwrap_err();
        assert_eq!(
            short,
            "line 2 must have at least 3 columns (token, user name, user uid), found 2"
        );
        assert!(
            StaticTokens::parse("a,\"b,c")
                .unwrap_err()
                .contains("line 1")
        );
        let missing = StaticTokens::read(Path::new("/does/not/exist")).unwrap_err();
        assert!(
            missing.starts_with("token file '/does/not/exist': "),
            "{missing}"
        );
    }
}
