//! The fields of an `AuthorizationConfiguration`, with upstream's names.

use serde::Deserialize;

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Document {
    pub(super) authorizers: Vec<Authorizer>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Authorizer {
    pub(super) r#type: String,
    pub(super) name: String,
    pub(super) webhook: Option<Webhook>,
}

/// Durations are texts in Go's notation; those that are empty have defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Webhook {
    #[serde(rename = "authorizedTTL")]
    pub(super) authorized_ttl: String,
    pub(super) cache_authorized_requests: Option<bool>,
    #[serde(rename = "unauthorizedTTL")]
    pub(super) unauthorized_ttl: String,
    pub(super) cache_unauthorized_requests: Option<bool>,
    pub(super) timeout: String,
    pub(super) subject_access_review_version: String,
    pub(super) match_condition_subject_access_review_version: String,
    pub(super) failure_policy: String,
    pub(super) connection_info: ConnectionInfo,
    pub(super) match_conditions: Vec<MatchCondition>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ConnectionInfo {
    pub(super) r#type: String,
    pub(super) kube_config_file: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MatchCondition {
    pub(super) expression: String,
}
