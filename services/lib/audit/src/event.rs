//! Audit events (`audit.k8s.io/v1`, `Event`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use jiff::{Timestamp, Unit};
use setpoint_proto::meta::Status;

use crate::body::Body;
use crate::json::Object;
use crate::policy::{Level, Stage};

/// A user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// May be empty.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The object or the collection that a request is about. Fields may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectReference {
    /// The plural.
    pub resource: String,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The uid, if the request names it.
    pub uid: String,
    /// Empty for the core group.
    pub api_group: String,
    /// The version of the API.
    pub api_version: String,
    /// The resourceVersion, if the request names it.
    pub resource_version: String,
    /// Empty for the object itself.
    pub subresource: String,
}

/// The fields that all events of a request have in common.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The `Audit-ID` of the request.
    pub audit_id: String,
    /// The path and the query, as the client has sent them.
    pub request_uri: String,
    /// The verb; for a path of no resource, the method in lower case.
    pub verb: String,
    /// The user; empty if the credentials were refused.
    pub user: User,
    /// The addresses that the request came from, that of the connection last. A client sets all others freely.
    pub source_ips: Vec<String>,
    /// The `User-Agent`, cut to 1024 bytes.
    pub user_agent: String,
    /// The time at which the request was received.
    pub received: Timestamp,
}

/// An event.
#[derive(Debug)]
pub struct Event {
    pub(crate) head: Arc<Head>,
    pub(crate) level: Level,
    pub(crate) stage: Stage,
    pub(crate) stage_at: Timestamp,
    pub(crate) impersonated: Option<Arc<User>>,
    /// The verb of the mode of constrained impersonation.
    pub(crate) constraint: Option<&'static str>,
    pub(crate) object: Option<ObjectReference>,
    pub(crate) status: Option<Status>,
    pub(crate) request: Option<Body>,
    pub(crate) response: Option<Body>,
    pub(crate) omit_managed_fields: bool,
    pub(crate) annotations: BTreeMap<Cow<'static, str>, String>,
    pub(crate) encoded: OnceLock<String>,
}

/// The size in bytes that an event without bodies counts as.
const SMALL: usize = 2 << 10;

impl Event {
    /// Returns the event in JSON, without a line break. It is encoded once for all back ends.
    pub fn json(&self) -> &str {
        self.encoded.get_or_init(|| self.encode())
    }

    /// Returns an estimate of its size in memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        let bodies = [&self.request, &self.response].into_iter().flatten();
        let values = self.annotations.values().map(String::len);
        SMALL + bodies.map(Body::size).chain(values).sum::<usize>()
    }

    fn encode(&self) -> String {
        let (mut event, head) = (Object::new(), &*self.head);
        event.field("kind", "Event");
        event.field("apiVersion", "audit.k8s.io/v1");
        event.field("level", self.level.name());
        event.field("auditID", &head.audit_id);
        event.field("stage", self.stage.name());
        event.field("requestURI", &head.request_uri);
        event.field("verb", &head.verb);
        event.object("user", |object| user(object, &head.user));
        if let Some(other) = &self.impersonated {
            event.object("impersonatedUser", |object| user(object, other));
        }
        if let Some(constraint) = self.constraint {
            event.object("authenticationMetadata", |metadata| {
                metadata.field("impersonationConstraint", constraint);
            });
        }
        if !head.source_ips.is_empty() {
            event.field("sourceIPs", &head.source_ips);
        }
        event.text("userAgent", &head.user_agent);
        self.encode_rest(&mut event);
        event.finish()
    }

    /// Adds what is not known before the request was handled, and the times.
    fn encode_rest(&self, event: &mut Object) {
        if let Some(of) = &self.object {
            event.object("objectRef", |object| reference(object, of));
        }
        if let Some(found) = &self.status {
            event.object("responseStatus", |object| status(object, found));
        }
        for (name, body) in [
            ("requestObject", &self.request),
            ("responseObject", &self.response),
        ] {
            let json = body.as_ref();
            let json = json.and_then(|body| encoded(body, self.omit_managed_fields));
            if let Some(json) = json {
                event.encoded(name, &json);
            }
        }
        event.field("requestReceivedTimestamp", &micro_time(self.head.received));
        event.field("stageTimestamp", &micro_time(self.stage_at));
        if !self.annotations.is_empty() {
            event.field("annotations", &self.annotations);
        }
    }
}

/// Returns a body in JSON; `None` if it cannot be decoded. A panic, which would be an error of a decoder, costs the
/// body, and neither the event nor the back end.
fn encoded(body: &Body, omits_managed_fields: bool) -> Option<String> {
    let encode = || body.json(omits_managed_fields);
    catch_unwind(AssertUnwindSafe(encode)).ok().flatten()
}

fn user(object: &mut Object, user: &User) {
    object.text("username", &user.name);
    object.text("uid", &user.uid);
    if !user.groups.is_empty() {
        object.field("groups", &user.groups);
    }
    if !user.extra.is_empty() {
        object.field("extra", &user.extra);
    }
}

fn reference(object: &mut Object, of: &ObjectReference) {
    object.text("resource", &of.resource);
    object.text("namespace", &of.namespace);
    object.text("name", &of.name);
    object.text("uid", &of.uid);
    object.text("apiGroup", &of.api_group);
    object.text("apiVersion", &of.api_version);
    object.text("resourceVersion", &of.resource_version);
    object.text("subresource", &of.subresource);
}

/// Writes a status without its metadata, as upstream.
fn status(object: &mut Object, status: &Status) {
    object.object("metadata", |_| {});
    object.text("status", &status.status);
    object.text("message", &status.message);
    object.text("reason", &status.reason);
    if let Some(details) = &status.details {
        object.field("details", details);
    }
    if status.code != 0 {
        object.field("code", &status.code);
    }
}

/// Returns a time with microseconds, as upstream's `MicroTime`.
fn micro_time(time: Timestamp) -> String {
    let time = time.round(Unit::Microsecond).unwrap_or(time);
    format!("{time:.6}")
}
