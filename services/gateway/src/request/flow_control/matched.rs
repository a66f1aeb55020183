//! The response headers about the FlowSchema of a request, as upstream.

use std::sync::{Arc, OnceLock};

use http::{HeaderMap, HeaderName};

use super::schema::Schema;

const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The FlowSchema of a call, for the headers of its response. Clones are the same. It holds no seat.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matched(Arc<OnceLock<Arc<Schema>>>);

impl Matched {
    /// Notes the schema, once a call has been classified.
    pub(super) fn note(&self, schema: &Arc<Schema>) {
        let _ = self.0.set(schema.clone());
    }

    /// Sets the headers of the response; none if the call was not classified.
    pub(crate) fn set_headers(&self, headers: &mut HeaderMap) {
        if let Some(schema) = self.0.get() {
            set_headers(schema, headers);
        }
    }
}

/// Sets the headers of a response: the uids of the FlowSchema and of its level.
pub(super) fn set_headers(schema: &Schema, headers: &mut HeaderMap) {
    let [schema, level] = &schema.uids;
    headers.insert(SCHEMA_UID, schema.clone());
    headers.insert(LEVEL_UID, level.clone());
}
