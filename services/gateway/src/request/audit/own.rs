//! Writes that the gateway makes by itself.

use std::slice;
use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;
use setpoint_audit::{Auditor, Body, Head};
use setpoint_codec::Object;
use setpoint_codec::rest::path_of;
use setpoint_kinds::{Identity, Target};
use setpoint_model::Verb;
use setpoint_proto::ApiError;

use super::current::{begin, current, fail, is_in_request, request, request_object, scope};
use super::source::{Source, new_id};
use crate::request::Attributes;

const AGENT: &str = "setpoint-gateway";

/// A write of the gateway itself, which is recorded as a request of its own.
pub(crate) struct Own<'a> {
    auditor: &'a Arc<Auditor>,
    user: &'a Identity,
    verb: Verb,
    target: &'a Target,
    sent: Sent<'a>,
}

/// The body of a write.
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

/// Returns a write that is to be recorded: if there is an auditor, and the write is no part of a request that the task
/// handles.
pub(crate) fn own_write<'a>(
    auditor: Option<&'a Arc<Auditor>>,
    user: &'a Identity,
    verb: Verb,
    target: &'a Target,
    sent: impl FnOnce() -> Sent<'a>,
) -> Option<Own<'a>> {
    let auditor = auditor.filter(|_| !is_in_request())?;
    Some(Own {
        auditor,
        user,
        verb,
        target,
        sent: sent(),
    })
}

impl<'a> Own<'a> {
    /// Makes the write. Boxed, so that the futures of other writes are not larger for it.
    ///
    /// # Errors
    /// Those of the write.
    pub(crate) fn record<T: 'a>(
        self,
        work: impl Future<Output = Result<T, ApiError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<T, ApiError>> {
        let (auditor, source) = (self.auditor, source(self.target));
        let audited = async move {
            begin(
                self.user,
                slice::from_ref(&Attributes::of_target(self.verb, self.target)),
            );
            self.sent.record();
            let outcome = work.await;
            self.end(&outcome);
            outcome
        };
        scope(auditor, source, audited).boxed()
    }

    fn end<T>(&self, outcome: &Result<T, ApiError>) {
        if let Err(error) = outcome {
            fail(error);
        }
        if let Some(record) = current() {
            record.respond(match outcome {
                Err(error) => error.code(),
                Ok(_) if self.verb == Verb::Create => 201,
                Ok(_) => 200,
            });
        }
    }
}

fn source(target: &Target) -> Source {
    Source {
        head: Head {
            audit_id: new_id().to_string(),
            request_uri: path(target),
            user_agent: AGENT.to_owned(),
            received: Timestamp::now(),
            ..Head::default()
        },
        traceparent: None,
    }
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
