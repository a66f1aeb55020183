//! Bootstrap tokens, and the Secrets that say what they are for.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context as _, anyhow};
use jiff::Timestamp;
use ring::rand::{SecureRandom as _, SystemRandom};
use setpoint_model::bootstrap_token::{
    self, AUTHENTICATION, DESCRIPTION, EXPIRATION, EXTRA_GROUPS, ID, NAMESPACE, NODE_ANNOTATION,
    SECRET, SIGNING, TYPE,
};
use setpoint_proto::core::Secret;

use crate::launcher::Joining;

/// The characters of tokens.
const CHARACTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
/// Random bytes below this number are equally often each character; others are not used.
const EVEN: u8 = 252;
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;

/// A token: an id, which is no secret, and a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    id: String,
    secret: String,
}

/// The purpose of a new token.
#[derive(Clone, Debug)]
pub struct Purpose<'a> {
    /// The kind of process that it brings in.
    pub joining: Joining,
    /// The one node that it brings in, for an agent.
    pub node: Option<&'a str>,
    /// A text for people.
    pub description: &'a str,
    /// The time from which on it is not accepted.
    pub expiry: Timestamp,
}

impl Token {
    /// Returns a new token from the randomness of the system.
    ///
    /// # Errors
    /// If there is none.
    pub fn random() -> anyhow::Result<Self> {
        Ok(Self {
            id: random_text(ID_LENGTH)?,
            secret: random_text(SECRET_LENGTH)?,
        })
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the secret.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// Returns the token as clients send it.
    pub fn text(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }

    /// Returns the Secret by which the cluster knows the token: it signs `cluster-info`, and identifies what joins.
    pub fn to_secret(&self, purpose: &Purpose<'_>) -> Secret {
        let mut secret = Secret {
            r#type: TYPE.to_owned(),
            ..Secret::default()
        };
        secret.metadata.name = bootstrap_token::secret_name(&self.id);
        NAMESPACE.clone_into(&mut secret.metadata.namespace);
        let node = purpose
            .node
            .map(|node| (NODE_ANNOTATION.to_owned(), node.to_owned()));
        secret.metadata.annotations.extend(node);
        let expiry = purpose.expiry.to_string();
        let data = [
            (ID, self.id.as_str()),
            (SECRET, self.secret.as_str()),
            (EXPIRATION, expiry.as_str()),
            (AUTHENTICATION, "true"),
            (SIGNING, "true"),
            (EXTRA_GROUPS, purpose.joining.group()),
            (DESCRIPTION, purpose.description),
        ];
        let data = data.into_iter().filter(|(_, value)| !value.is_empty());
        let data = data.map(|(key, value)| (key.to_owned(), value.as_bytes().to_owned().into()));
        secret.data.extend(data);
        secret
    }
}

impl FromStr for Token {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = bootstrap_token::parts(text);
        let (id, secret) = parts.ok_or_else(|| {
            anyhow!("a token is 6 characters, a dot and 16 characters, of a to z and 0 to 9")
        })?;
        Ok(Self {
            id: id.to_owned(),
            secret: secret.to_owned(),
        })
    }
}

/// Without the secret.
impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.…", self.id)
    }
}

/// Returns the id that an argument names: itself, or that of a whole token.
///
/// # Errors
/// If it is neither.
pub fn id_of(argument: &str) -> anyhow::Result<&str> {
    let (id, secret) = argument.split_once('.').unwrap_or((argument, ""));
    let is_plain = |text: &str| text.bytes().all(|byte| CHARACTERS.contains(&byte));
    let is_id = id.len() == ID_LENGTH && is_plain(id);
    let is_token = secret.is_empty() && !argument.contains('.')
        || secret.len() == SECRET_LENGTH && is_plain(secret);
    // Not the argument: it may be a secret.
    (is_id && is_token)
        .then_some(id)
        .context("a token is named by its id of 6 characters, or as a whole")
}

fn random_text(length: usize) -> anyhow::Result<String> {
    let (random, mut text) = (SystemRandom::new(), String::with_capacity(length));
    let mut bytes = [0; 64];
    while text.len() < length {
        let filled = random.fill(&mut bytes);
        filled.map_err(|_| anyhow!("this machine has no randomness"))?;
        let even = bytes.iter().filter(|byte| **byte < EVEN);
        let characters = even.filter_map(|byte| {
            let index = usize::from(*byte) % CHARACTERS.len();
            CHARACTERS.get(index).copied().map(char::from)
        });
        text.extend(characters.take(length - text.len()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn tokens_are_random_and_of_all_characters() {
        let tokens: Vec<_> = (0..200).map(|_| Token::random().unwrap()).collect();
        let texts: HashSet<_> = tokens.iter().map(Token::text).collect();
        assert_eq!(texts.len(), tokens.len());
        for token in &tokens {
            assert_eq!(token.text().parse::<Token>().unwrap(), *token);
        }
        let used: HashSet<_> = texts.iter().flat_map(|text| text.bytes()).collect();
        assert_eq!(used.len(), CHARACTERS.len() + 1, "{used:?}");
    }

    #[test]
    fn the_secret_of_a_token_is_not_shown_by_accident() {
        let token: Token = "abcdef.0123456789abcdef".parse().unwrap();
        assert_eq!(format!("{token:?}"), "abcdef.…");
        let error = "abcdef.012".parse::<Token>().unwrap_err().to_string();
        assert!(!error.contains("012"), "{error}");
    }

    #[test]
    fn a_secret_says_what_its_token_is_for() {
        let token: Token = "abcdef.0123456789abcdef".parse().unwrap();
        let secret = token.to_secret(&Purpose {
            joining: Joining::Agent,
            node: Some("worker-1"),
            description: "",
            expiry: "2026-11-28T12:15:00Z".parse().unwrap(),
        });
        assert_eq!(bootstrap_token::id(&secret), Some("abcdef"));
        assert_eq!(secret.metadata.namespace, "kube-system");
        assert_eq!(secret.metadata.annotations["setpoint.dev/node"], "worker-1");
        let data: Vec<_> = secret
            .data
            .iter()
            .map(|(key, value)| format!("{key}={}", String::from_utf8_lossy(value)))
            .collect();
        assert_eq!(
            data,
            [
                "auth-extra-groups=system:bootstrappers:setpoint:agent",
                "expiration=2026-11-28T12:15:00Z",
                "token-id=abcdef",
                "token-secret=0123456789abcdef",
                "usage-bootstrap-authentication=true",
                "usage-bootstrap-signing=true",
            ]
        );
    }

    #[test]
    fn a_token_is_named_by_its_id_or_as_a_whole() {
        for named in ["abcdef", "abcdef.0123456789abcdef"] {
            assert_eq!(id_of(named).unwrap(), "abcdef");
        }
        for other in [
            "",
            "abcde",
            "abcdeF",
            "abcdef.",
            "abcdef.0123",
            "abcdefg",
            "../../x",
        ] {
            assert!(id_of(other).is_err(), "{other}");
        }
    }
}
