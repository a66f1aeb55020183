//! `AuthenticationConfiguration`: issuers of tokens, what their claims become, and requests without credentials.

mod claims;
mod compiler;
mod document;
mod url;
mod user;
mod validation;

use setpoint_cel::on_compiler_stack;

pub use document::{Anonymous, Issuer};
use user::Rules;

/// The configuration.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    /// The issuers, with distinct URLs.
    pub authenticators: Vec<JwtAuthenticator>,
    /// The rule for requests without credentials; `None` if the file has none.
    pub anonymous: Option<Anonymous>,
}

/// An issuer of tokens, and the rules for them.
#[derive(Clone, Debug)]
pub struct JwtAuthenticator {
    /// The issuer.
    pub issuer: Issuer,
    rules: std::sync::Arc<Rules>,
}

impl Configuration {
    /// Reads the text of a file. No issuer may be one of `disallowed`.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with the path of its field.
    pub fn read(text: &[u8], disallowed: &[&str]) -> Result<Self, String> {
        let document = super::document::decode(text, "AuthenticationConfiguration")?;
        on_compiler_stack(|| validation::configuration(document, disallowed))?
    }
}
