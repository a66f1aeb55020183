//! The record of the request that a task handles.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use setpoint_audit::{
    Auditor, Body, Decision, Head, Level, ObjectReference, Record, Subject, SubjectResource,
};
use setpoint_codec::Object;
use setpoint_kinds::Identity;
use setpoint_proto::{ApiError, Reason};
use setpoint_telemetry::Span;

use super::source::{Source, user};
use crate::request::Attributes;

tokio::task_local! {
    static CURRENT: Arc<Current>;
}

/// The trace of a request.
const TRACE_ID: &str = "setpoint.dev/trace-id";
const DECISION: &str = "authorization.k8s.io/decision";
const REASON: &str = "authorization.k8s.io/reason";
const ALLOW: &str = "allow";
const FORBID: &str = "forbid";
/// The reason of a request about which nothing could be decided, as upstream.
const ERROR: &str = "internal error";

/// A request that is audited, if the policy says so.
pub(super) struct Current {
    auditor: Arc<Auditor>,
    /// Taken when the record begins.
    source: Mutex<Option<Source>>,
    /// Set once the policy has decided; `None` inside if nothing is recorded.
    record: OnceLock<Option<Arc<Record>>>,
    /// The annotations from before, which are about the credentials of the request.
    early: Mutex<Vec<(Cow<'static, str>, String)>>,
}

impl Current {
    fn new(auditor: Arc<Auditor>, source: Source) -> Arc<Self> {
        Arc::new(Self {
            auditor,
            source: Mutex::new(Some(source)),
            record: OnceLock::new(),
            early: Mutex::default(),
        })
    }

    fn open(&self, by: &Identity, asked: &[Attributes]) -> Option<Arc<Record>> {
        let subjects = asked.iter().map(|one| subject(Some(by), one));
        let decision = self.auditor.decide(&subjects.collect::<Vec<_>>());
        let (source, asked) = (self.source.lock().take()?, asked.first()?);
        if decision.level == Level::None {
            return None;
        }
        let head = Head {
            user: user(by),
            verb: asked.verb.clone().into_owned(),
            ..source.head
        };
        let (sink, lasts) = (self.auditor.sink(), asked.is_long_running());
        let record = Record::begin(sink, decision, head, reference(asked), lasts);
        for (key, value) in self.early.lock().drain(..) {
            record.annotate(key, value);
        }
        if let Some(parent) = Span::current().traceparent().or(source.traceparent) {
            record.annotate(TRACE_ID, parent.trace_id());
        }
        Some(record)
    }

    fn refuse(&self, asked: &Attributes, error: &ApiError) {
        let decision: Decision = self.auditor.decide(&[subject(None, asked)]);
        let Some(source) = self.source.lock().take() else {
            return;
        };
        if decision.level == Level::None {
            return;
        }
        let head = Head {
            verb: asked.verb.clone().into_owned(),
            ..source.head
        };
        let (sink, status) = (self.auditor.sink(), error.to_status());
        let early = std::mem::take(&mut *self.early.lock());
        Record::refuse(sink, decision, head, reference(asked), status, early);
    }

    fn record(&self) -> Option<&Arc<Record>> {
        self.record.get()?.as_ref()
    }
}

fn subject<'a>(user: Option<&'a Identity>, asked: &'a Attributes) -> Subject<'a> {
    Subject {
        user: user.map(|user| user.name.as_str()),
        groups: user.map_or(&[], |user| &user.groups),
        verb: &asked.verb,
        resource: asked.resource.as_ref().map(|of| SubjectResource {
            group: &of.group,
            resource: &of.resource,
            subresource: &of.subresource,
            namespace: &of.namespace,
            name: &of.name,
        }),
        path: &asked.path,
    }
}

fn reference(asked: &Attributes) -> Option<ObjectReference> {
    let of = asked.resource.as_ref()?;
    Some(ObjectReference {
        resource: of.resource.clone(),
        namespace: of.namespace.clone(),
        name: of.name.clone(),
        api_group: of.group.clone(),
        api_version: of.version.clone(),
        subresource: of.subresource.clone(),
        ..ObjectReference::default()
    })
}

/// Runs the work of a request that may be recorded. The future is boxed, so that requests without audit are not larger
/// for it.
pub(super) async fn scope<T>(
    auditor: &Arc<Auditor>,
    source: Source,
    work: impl Future<Output = T> + Send,
) -> T {
    let current = Current::new(auditor.clone(), source);
    CURRENT.scope(current, Box::pin(work)).await
}

/// Returns whether this task handles a request that may be recorded.
pub(super) fn is_in_request() -> bool {
    CURRENT.try_with(|_| ()).is_ok()
}

/// Begins the record of the request: its user is known, and what it asks for.
pub(crate) fn begin(user: &Identity, asked: &[Attributes]) {
    let _ = CURRENT.try_with(|current| {
        current.record.get_or_init(|| current.open(user, asked));
    });
}

/// Begins the record of a request that has ended before it was known what it asks for.
pub(crate) fn begin_late(user: impl FnOnce() -> Identity, asked: impl FnOnce() -> Attributes) {
    let _ = CURRENT.try_with(|current| {
        let open = || current.open(&user(), &[asked()]);
        current.record.get_or_init(open);
    });
}

/// Records a request whose credentials were refused.
pub(crate) fn refuse(error: &ApiError, asked: impl FnOnce() -> Attributes) {
    if error.reason != Reason::Unauthorized {
        return;
    }
    let _ = CURRENT.try_with(|current| {
        current.record.get_or_init(|| {
            current.refuse(&asked(), error);
            None
        });
    });
}

/// Returns the record of the request; its last event is made when this is dropped, too.
pub(crate) fn current() -> Option<Arc<Record>> {
    CURRENT.try_with(|current| current.record().cloned()).ok()?
}

fn with(change: impl FnOnce(&Record)) {
    let _ = CURRENT.try_with(|current| current.record().map(|record| change(record)));
}

/// Returns whether the request is recorded.
pub(crate) fn is_recording() -> bool {
    CURRENT
        .try_with(|current| current.record().is_some())
        .unwrap_or_default()
}

/// Returns whether the body of the request is recorded.
pub(crate) fn has_requests() -> bool {
    let of = |current: &Arc<Current>| current.record().is_some_and(|record| record.has_requests());
    CURRENT.try_with(of).unwrap_or_default()
}

/// Adds an annotation; the first value of a key stays. The record may not have begun yet.
pub(crate) fn annotate(key: impl Into<Cow<'static, str>>, value: impl FnOnce() -> String) {
    let _ = CURRENT.try_with(|current| match current.record.get() {
        Some(Some(record)) => record.annotate(key, value()),
        Some(None) => {}
        None => current.early.lock().push((key.into(), value())),
    });
}

/// Adds the trace of the current span, if the request has none yet.
pub(crate) fn trace() {
    with(|record| {
        if let Some(parent) = Span::current().traceparent() {
            record.annotate(TRACE_ID, parent.trace_id());
        }
    });
}

/// Adds the user that the request acts as, and the verb of the mode if impersonation is constrained.
pub(crate) fn impersonated(by: &Identity, constraint: Option<&'static str>) {
    with(|record| record.impersonate(user(by), constraint));
}

/// Adds the decision about the request. Of several, one that forbids decides.
pub(crate) fn decided(decision: &Result<(), ApiError>, reason: impl FnOnce() -> String) {
    with(|record| match decision {
        Ok(()) => {
            record.annotate(DECISION, ALLOW);
            record.annotate(REASON, reason());
        }
        Err(error) if error.reason == Reason::Forbidden => {
            record.set_annotation(DECISION, FORBID);
            record.set_annotation(REASON, reason());
        }
        Err(_) => record.set_annotation(REASON, ERROR),
    });
}

/// Adds the object in the body of the request, which has this size in bytes: its names, and itself if the policy says
/// so.
pub(crate) fn request_object(object: &dyn Object, bytes: usize) {
    with(|record| {
        record.name(object.meta());
        if record.has_requests() {
            record.request(Body::Object(object.clone_box(), bytes));
        }
    });
}

/// Adds the body of the request, if the policy says so.
pub(crate) fn request(body: impl FnOnce() -> Body) {
    with(|record| {
        if record.has_requests() {
            record.request(body());
        }
    });
}

/// Adds the body of the response, if the policy says so.
pub(crate) fn response(body: impl FnOnce() -> Option<Body>) {
    with(|record| {
        if record.has_responses()
            && let Some(body) = body()
        {
            record.response(body);
        }
    });
}

/// Adds the error that the request is answered with.
pub(crate) fn fail(error: &ApiError) {
    with(|record| record.fail(error.to_status()));
}
