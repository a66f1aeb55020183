//! `AuthorizationConfiguration`: authorizers in the order in which they are asked.

mod conditions;
mod document;
mod validation;

use std::path::PathBuf;
use std::time::Duration;

use setpoint_cel::on_compiler_stack;

pub use conditions::MatchConditions;

/// The configuration.
#[derive(Debug)]
pub struct Configuration {
    /// The authorizers, in their order; at least one.
    pub authorizers: Vec<Authorizer>,
}

/// An authorizer, with its name.
#[derive(Debug)]
pub struct Authorizer {
    /// The name, which no other one has.
    pub name: String,
    /// Its type, with its settings.
    pub kind: Kind,
}

/// The type of an authorizer.
#[derive(Debug)]
pub enum Kind {
    /// Allows every request.
    AlwaysAllow,
    /// Allows no request.
    AlwaysDeny,
    /// Allows nodes what they need.
    Node,
    /// Allows what roles and bindings allow.
    Rbac,
    /// Asks another server.
    Webhook(Box<Webhook>),
}

/// A server that decides.
#[derive(Debug)]
pub struct Webhook {
    /// The time for which an answer that allows is used again; zero if it is not.
    pub authorized_ttl: Duration,
    /// The time for which another answer is used again; zero if it is not.
    pub unauthorized_ttl: Duration,
    /// The time in which it has to answer.
    pub timeout: Duration,
    /// The version of the questions.
    pub version: Version,
    /// Whether a request is refused if the server does not answer; otherwise the next authorizer is asked.
    pub denies_on_failure: bool,
    /// The kubeconfig file with its URL and the credentials for it.
    pub kubeconfig: PathBuf,
    /// The conditions under which it is asked.
    pub conditions: MatchConditions,
}

/// The version of a `SubjectAccessReview`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // They have upstream's names.
pub enum Version {
    V1,
    V1beta1,
}

impl Configuration {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with the path of its field.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let document = super::document::decode(text, "AuthorizationConfiguration")?;
        on_compiler_stack(|| validation::configuration(&document))?
    }
}
