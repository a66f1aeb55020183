//! Writes that the gateway makes by itself.

use std::slice;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use setpoint_audit::{Auditor, Body, Head};
use setpoint_codec::Object;
use setpoint_codec::rest::path_of;
use setpoint_kinds::{Identity, Target};
use setpoint_model::Verb;
use setpoint_proto::ApiError;

use super::current::{begin, current, fail, is_in_request, request, request_object, scope};
use super::source::Source;
use crate::request::Attributes;

const AGENT: &str = "setpoint-gateway";

/// A write of the gateway itself.
pub(crate) struct Own<'a> {
    pub(crate) user: &'a Identity,
    pub(crate) verb: Verb,
    pub(crate) target: &'a Target,
    pub(crate) sent: Sent<'a>,
}

/// What a write sends.
pub(crate) enum Sent<'a> {
    Nothing,
    Object(Box<dyn Object>),
    /// A patch, and its size in bytes.
    Patch(&'a Value, usize),
}

impl Sent<'_> {
    fn record(&self) {
        match self {
            Self::Nothing => {}
            Self::Object(object) => request_object(&**object, object.encode().len()),
            Self::Patch(patch, bytes) => request(|| Body::Value((*patch).clone(), *bytes)),
        }
    }
}

/// Returns the auditor, unless the task handles a request, of which its writes are parts.
pub(crate) fn own_auditor(auditor: Option<&Arc<Auditor>>) -> Option<&Arc<Auditor>> {
    auditor.filter(|_| !is_in_request())
}

/// Makes a write as a request of its own.
///
/// # Errors
/// Those of the write.
pub(crate) async fn own<T>(
    auditor: &Arc<Auditor>,
    write: Own<'_>,
    work: impl Future<Output = Result<T, ApiError>> + Send,
) -> Result<T, ApiError> {
    let asked = Attributes::of_target(write.verb, write.target);
    let source = Source {
        head: Head {
            audit_id: uuid::Uuid::new_v4().to_string(),
            request_uri: path(write.target),
            user_agent: AGENT.to_owned(),
            received: Timestamp::now(),
            ..Head::default()
        },
        traceparent: None,
    };
    let audited = async {
        begin(write.user, slice::from_ref(&asked));
        write.sent.record();
        let outcome = work.await;
        if let Err(error) = &outcome {
            fail(error);
        }
        if let Some(record) = current() {
            let code = match &outcome {
                Err(error) => error.code(),
                Ok(_) if write.verb == Verb::Create => 201,
                Ok(_) => 200,
            };
            record.respond(code);
        }
        outcome
    };
    scope(auditor, source, audited).await
}

/// Returns the path of the request over HTTP that does the same.
fn path(target: &Target) -> String {
    let kind = target.served;
    let mut path = path_of(&kind.group, &kind.version);
    if !target.namespace.is_empty() {
        path += "/namespaces/";
        path += &target.namespace;
    }
    let part = target.subresource.name();
    let segments = [kind.plural.as_str(), &target.name, part];
    for segment in segments.into_iter().filter(|segment| !segment.is_empty()) {
        path.push('/');
        path.push_str(segment);
    }
    path
}
