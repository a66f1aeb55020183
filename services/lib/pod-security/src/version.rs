//! The versions of the standards: those of Kubernetes.

use std::fmt;

/// A version of the standards. The latest one is later than any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// The minor version of Kubernetes 1, which may be one that is not there yet.
    Minor(i64),
    /// The version of the gateway.
    Latest,
}

impl Version {
    /// Returns the version of a text: `latest`, or `v1.` and a number without leading zeros.
    ///
    /// # Errors
    /// If it is neither, in upstream's words.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match text {
            "latest" => Ok(Self::Latest),
            _ => minor(text)
                .map(Self::Minor)
                .ok_or("must be \"latest\" or \"v1.x\""),
        }
    }
}

fn minor(text: &str) -> Option<i64> {
    let digits = text.strip_prefix("v1.")?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = digits == "0" || !digits.starts_with('0');
    digits.parse().ok().filter(|_| is_number && is_short)
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minor(minor) => write!(f, "v1.{minor}"),
            Self::Latest => f.write_str("latest"),
        }
    }
}
