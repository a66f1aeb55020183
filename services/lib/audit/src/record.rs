//! The record of a request: what its events say, filled in while it is handled.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_proto::meta::{ObjectMeta, Status};

use crate::body::Body;
use crate::event::{Event, Head, ObjectReference, User};
use crate::metrics;
use crate::policy::{Decision, Level, Stage};
use crate::sink::Sink;

/// The message of a request that ended without a response.
const CLOSED: &str = "Connection closed early";

/// The record of a request. When it is dropped, the last event is made: so it is kept until the response has ended.
///
/// ```text
/// begin ─▶ RequestReceived ─▶ (long-running: ResponseStarted) ─▶ dropped: ResponseComplete, or Panic while unwinding
/// ```
pub struct Record {
    sink: Arc<Sink>,
    head: Arc<Head>,
    decision: Decision,
    /// Whether the request lasts until one end ends it.
    is_long_running: bool,
    state: Mutex<State>,
}

/// The parts of a request that are known so far.
#[derive(Default)]
struct State {
    impersonated: Option<Arc<User>>,
    constraint: Option<&'static str>,
    object: Option<ObjectReference>,
    status: Option<Status>,
    request: Option<Body>,
    response: Option<Body>,
    annotations: BTreeMap<Cow<'static, str>, String>,
    /// Whether there are no further events.
    is_over: bool,
}

impl Record {
    /// Begins the record of a request whose level is not `None`. Makes the event `RequestReceived`.
    pub fn begin(
        sink: &Arc<Sink>,
        decision: Decision,
        head: Head,
        object: Option<ObjectReference>,
        is_long_running: bool,
    ) -> Arc<Self> {
        let record = Self::new(sink, decision, head, object, is_long_running);
        record.emit(Stage::RequestReceived, &mut record.state.lock(), false);
        Arc::new(record)
    }

    /// Records a request whose credentials were refused: its only event is `ResponseStarted`, as upstream.
    pub fn refuse(
        sink: &Arc<Sink>,
        decision: Decision,
        head: Head,
        object: Option<ObjectReference>,
        status: Status,
        annotations: Vec<(Cow<'static, str>, String)>,
    ) {
        let record = Self::new(sink, decision, head, object, true);
        for (key, value) in annotations {
            record.annotate(key, value);
        }
        record.fail(status);
        let mut state = record.state.lock();
        record.emit(Stage::ResponseStarted, &mut state, true);
        state.is_over = true;
    }

    fn new(
        sink: &Arc<Sink>,
        decision: Decision,
        head: Head,
        object: Option<ObjectReference>,
        is_long_running: bool,
    ) -> Self {
        Self {
            sink: sink.clone(),
            head: Arc::new(head),
            decision,
            is_long_running,
            state: Mutex::new(State {
                object,
                ..State::default()
            }),
        }
    }

    /// Returns whether the request lasts until one end ends it.
    pub fn is_long_running(&self) -> bool {
        self.is_long_running
    }

    /// Returns whether the bodies of requests are recorded.
    pub fn has_requests(&self) -> bool {
        self.decision.level >= Level::Request
    }

    /// Returns whether the bodies of responses are recorded.
    pub fn has_responses(&self) -> bool {
        self.decision.level >= Level::RequestResponse
    }

    /// Sets the user that the request acts as, and the verb of the mode if impersonation is constrained.
    pub fn impersonate(&self, user: User, constraint: Option<&'static str>) {
        let mut state = self.state.lock();
        state.impersonated = Some(Arc::new(user));
        state.constraint = constraint;
    }

    /// Adds an annotation. The first value of a key stays, as upstream.
    pub fn annotate(&self, key: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        let mut state = self.state.lock();
        state.annotations.entry(key.into()).or_insert(value.into());
    }

    /// Sets an annotation, whether or not it has a value.
    pub fn set_annotation(&self, key: &'static str, value: impl Into<String>) {
        let mut state = self.state.lock();
        state.annotations.insert(key.into(), value.into());
    }

    /// Completes the reference to the object by what the object of the request says.
    pub fn name(&self, names: &ObjectMeta) {
        let fill = |field: &mut String, value: &str| {
            if field.is_empty() {
                value.clone_into(field);
            }
        };
        if let Some(object) = &mut self.state.lock().object {
            fill(&mut object.namespace, &names.namespace);
            fill(&mut object.name, &names.name);
            fill(&mut object.uid, &names.uid);
            fill(&mut object.resource_version, &names.resource_version);
        }
    }

    /// Sets the body of the request.
    pub fn request(&self, body: Body) {
        self.state.lock().request = Some(body);
    }

    /// Sets the body of the response.
    pub fn response(&self, body: Body) {
        self.state.lock().response = Some(body);
    }

    /// Sets the error that the request is answered with.
    pub fn fail(&self, status: Status) {
        let mut state = self.state.lock();
        if self.has_responses() {
            state.response = Some(Body::Status(Box::new(status.clone())));
        }
        state.status = Some(status);
    }

    /// Records the head of the response. A long-running request has its event `ResponseStarted` now.
    pub fn respond(&self, code: u16) {
        let mut state = self.state.lock();
        state.status.get_or_insert_default().code = code.into();
        if self.is_long_running {
            self.emit(Stage::ResponseStarted, &mut state, false);
        }
    }

    /// Makes the event of a stage, unless that is omitted. The last one takes what others would have to copy; bodies
    /// are in the last one only, but for upstream's `RequestReceived`, which has none, either.
    fn emit(&self, stage: Stage, state: &mut State, is_last: bool) {
        if self.decision.omit_stages.contains(stage) {
            return;
        }
        let stage_at = match stage {
            Stage::RequestReceived => self.head.received,
            _ => Timestamp::now(),
        };
        metrics::event();
        let mut event = Event {
            head: self.head.clone(),
            level: self.decision.level,
            stage,
            stage_at,
            impersonated: state.impersonated.clone(),
            constraint: state.constraint,
            object: None,
            status: None,
            request: None,
            response: None,
            omit_managed_fields: self.decision.omit_managed_fields,
            annotations: BTreeMap::new(),
            encoded: OnceLock::new(),
        };
        if is_last {
            event.object = state.object.take();
            event.status = state.status.take();
            event.request = state.request.take();
            event.response = state.response.take();
            event.annotations = std::mem::take(&mut state.annotations);
        } else {
            event.object.clone_from(&state.object);
            event.status.clone_from(&state.status);
            event.annotations.clone_from(&state.annotations);
        }
        self.sink.send(event);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let mut state = std::mem::take(self.state.get_mut());
        if state.is_over {
            return;
        }
        let stage = match std::thread::panicking() {
            true => Stage::Panic,
            false => Stage::ResponseComplete,
        };
        if stage == Stage::Panic {
            state.status = Some(panicked());
        } else if state.status.is_none() {
            state.status = Some(closed_early());
            if self.is_long_running {
                self.emit(Stage::ResponseStarted, &mut state, false);
            }
        }
        self.emit(stage, &mut state, true);
    }
}

fn panicked() -> Status {
    Status {
        status: "Failure".into(),
        message: "APIServer panic'd".into(),
        reason: "InternalError".into(),
        code: 500,
        ..Status::default()
    }
}

fn closed_early() -> Status {
    Status {
        status: "Success".into(),
        message: CLOSED.into(),
        code: 200,
        ..Status::default()
    }
}
