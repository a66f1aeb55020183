//! One thing to do when owners or namespaces go, and how it ended.

use std::time::Duration;

use opentelemetry::trace::SpanBuilder;
use setpoint_proto::meta::OwnerReference;
use setpoint_proto::{ApiError, Cause, Reason};
use setpoint_task::catch_panic;
use setpoint_telemetry::Span;
use tracing::debug;

use super::node::Node;
use super::{attempt, namespace, owner, report};
use crate::registry::{Registry, RequestContext};

/// Something to do, and why: it goes on in the trace of what made it necessary.
pub(super) struct Task {
    pub action: Action,
    pub cause: Option<Cause>,
}

/// Something to do.
#[derive(Clone)]
pub(super) enum Action {
    /// Delete a dependant if none of its owners is left, or take away its references to those that are not.
    Attempt(Node),
    /// Let an owner go, once its dependants are free or gone as its deletion asked.
    End(Node),
    /// Delete what is in this namespace; let it go once it is empty.
    Empty(String),
    /// Tell of an owner reference that can never be resolved.
    Report(Node, OwnerReference),
}

/// Tells tasks apart: of two that are alike, one is enough.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id {
    action: &'static str,
    about: String,
}

/// The node's place in the graph when its task began.
#[derive(Clone, Copy, Default)]
pub(super) struct Position {
    pub has_dependants: bool,
    pub in_cycle: bool,
}

/// The outcome of a task.
pub(super) enum Outcome {
    Done,
    /// Done, and these are to be done because of it.
    Then(Vec<Action>),
    /// Something has to happen elsewhere first; an event may tell of it earlier than this.
    Later(Duration),
    Failed,
}

impl Task {
    pub fn id(&self) -> Id {
        let about = match &self.action {
            Action::Attempt(node) | Action::End(node) => node.uid.clone(),
            Action::Empty(namespace) => namespace.clone(),
            Action::Report(node, owner) => format!("{}/{}", node.uid, owner.uid),
        };
        Id {
            action: self.action.name(),
            about,
        }
    }

    /// The same reason, another task.
    pub fn followed_by(&self, action: Action) -> Self {
        Self {
            action,
            cause: self.cause.clone(),
        }
    }
}

impl Action {
    const fn name(&self) -> &'static str {
        match self {
            Self::Attempt(_) => "collect abandoned",
            Self::End(_) => "collect dependants",
            Self::Empty(_) => "collect namespace",
            Self::Report(..) => "report owner reference",
        }
    }
}

/// Does it. A panic counts as a failure.
pub(super) async fn perform(
    registry: &Registry,
    task: Task,
    position: Position,
) -> (Task, Outcome) {
    let (span, context) = (span(&task), &context(&task));
    let action = async {
        match &task.action {
            Action::Attempt(node) => attempt::attempt(registry, context, node, position).await,
            Action::End(node) => owner::end(registry, context, node, position).await,
            Action::Empty(namespace) => namespace::empty(registry, context, namespace).await,
            Action::Report(node, owner) => report::report(registry, context, node, owner).await,
        }
    };
    let ended = catch_panic("garbage-collector", span.in_scope(action)).await;
    let outcome = match ended {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => outcome_of(&task, &error),
        Err(_) => Outcome::Failed,
    };
    (task, outcome)
}

fn outcome_of(task: &Task, error: &ApiError) -> Outcome {
    if error.reason == Reason::NotFound {
        return Outcome::Done;
    }
    debug!(task = ?task.id(), %error, "a task is tried again later");
    Outcome::Failed
}

fn span(task: &Task) -> Span {
    let cause = task.cause.as_ref();
    let parent = cause.and_then(|cause| cause.traceparent);
    let span = |parent| Span::start(SpanBuilder::from_name(task.action.name()), Some(parent));
    parent.map_or_else(Span::none, span)
}

fn context(task: &Task) -> RequestContext {
    let context = RequestContext::default().by("garbage-collector");
    match &task.cause {
        Some(cause) => context.after(cause),
        None => context,
    }
}
