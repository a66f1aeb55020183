//! The fields of an `AuthenticationConfiguration`, with upstream's names.

use serde::Deserialize;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Document {
    pub(super) jwt: Vec<Jwt>,
    pub(super) anonymous: Option<Anonymous>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Jwt {
    pub(super) issuer: Issuer,
    pub(super) claim_validation_rules: Vec<ClaimValidationRule>,
    pub(super) claim_mappings: ClaimMappings,
    pub(super) user_validation_rules: Vec<UserValidationRule>,
}

/// An issuer of tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Issuer {
    /// The claim `iss` of its tokens.
    pub url: String,
    /// The URL of its discovery document; empty for that of OpenID Connect below `url`.
    #[serde(rename = "discoveryURL")]
    pub discovery_url: String,
    /// The certificates that it is trusted by, in PEM; empty for those of the system.
    pub certificate_authority: String,
    /// The audiences of which a token must have one.
    pub audiences: Vec<String>,
    pub(super) audience_match_policy: String,
    pub(super) egress_selector_type: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ClaimValidationRule {
    pub(super) claim: String,
    pub(super) required_value: String,
    pub(super) expression: String,
    pub(super) message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ClaimMappings {
    pub(super) username: PrefixedClaimOrExpression,
    pub(super) groups: PrefixedClaimOrExpression,
    pub(super) uid: ClaimOrExpression,
    pub(super) extra: Vec<ExtraMapping>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PrefixedClaimOrExpression {
    pub(super) claim: String,
    pub(super) prefix: Option<String>,
    pub(super) expression: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ClaimOrExpression {
    pub(super) claim: String,
    pub(super) expression: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ExtraMapping {
    pub(super) key: String,
    pub(super) value_expression: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UserValidationRule {
    pub(super) expression: String,
    pub(super) message: String,
}

/// The rule for requests without credentials.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Anonymous {
    /// Whether there are any.
    pub enabled: bool,
    pub(super) conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Condition {
    pub(super) path: String,
}

impl Anonymous {
    /// Returns the rule for every path.
    pub const fn everywhere(enabled: bool) -> Self {
        let conditions = Vec::new();
        Self {
            enabled,
            conditions,
        }
    }

    /// Returns whether a request for a path is accepted without credentials.
    pub fn accepts(&self, path: &str) -> bool {
        let mut conditions = self.conditions.iter();
        self.enabled && (self.conditions.is_empty() || conditions.any(|one| one.path == path))
    }
}
