//! A view of the Secret of a bootstrap token.

use jiff::Timestamp;
use setpoint_controller::View;
use setpoint_controller::client::ListOptions;
use setpoint_model::Meta;
use setpoint_model::bootstrap_token::{
    NAMESPACE, NODE_ANNOTATION, TYPE, USED_BY_ANNOTATION, expiry,
};
use setpoint_proto::core::Secret;

/// A bootstrap token, without what it is proven by.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenView {
    /// The metadata without labels and annotations.
    pub meta: Meta,
    /// The node that it brings in; `None` if it is for something else.
    pub node: Option<String>,
    /// The uid of the request that it was used for.
    pub used_by: Option<String>,
    /// The time at which it expires.
    pub expires: Option<Timestamp>,
}

impl View for TokenView {
    type Object = Secret;

    fn of(mut object: Secret) -> Self {
        let expires = expiry(&object);
        let mut annotation = |name| object.metadata.annotations.remove(name);
        let (node, used_by) = (annotation(NODE_ANNOTATION), annotation(USED_BY_ANNOTATION));
        let mut meta = Meta::of(&object.metadata);
        meta.labels.clear();
        meta.annotations.clear();
        Self {
            meta,
            node,
            used_by,
            expires,
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// Selects the Secrets of tokens.
pub(crate) fn tokens() -> ListOptions {
    ListOptions {
        namespace: NAMESPACE.to_owned(),
        fields: format!("type={TYPE}"),
        ..ListOptions::default()
    }
}
