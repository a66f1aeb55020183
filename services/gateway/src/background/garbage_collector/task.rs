//! The tasks of the garbage collector: actions on one object each, and their outcomes.

use opentelemetry::trace::SpanBuilder;
use setpoint_proto::meta::OwnerReference;
use setpoint_proto::{ApiError, Cause, Reason};
use setpoint_task::catch_panic;
use setpoint_telemetry::Span;
use tracing::debug;

use super::node::Node;
use super::{attempt, owner, report};
use crate::registry::{Registry, RequestContext};

/// An action, and the cause whose trace it continues.
pub(super) struct Task {
    pub action: Action,
    pub cause: Option<Cause>,
}

#[derive(Clone)]
pub(super) enum Action {
    /// Delete a dependant without owners, or remove its obsolete owner references.
    Attempt(Node),
    /// Orphan the dependants of an owner, or wait for their deletion; then remove its finalizers.
    Finalize(Node),
    /// Report an owner reference that names another namespace.
    Report(Node, OwnerReference),
}

/// The identity of a task in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id {
    action: &'static str,
    about: String,
}

/// Properties of the node in the graph when its task began.
#[derive(Clone, Copy, Default)]
pub(super) struct GraphState {
    pub has_dependants: bool,
    pub in_cycle: bool,
}

/// The outcome of a task.
pub(super) enum Outcome {
    Done,
    /// Done, with follow-up actions.
    Then(Vec<Action>),
    Failed,
}

impl Task {
    pub fn id(&self) -> Id {
        let about = match &self.action {
            Action::Attempt(node) | Action::Finalize(node) => node.uid.clone(),
            Action::Report(node, owner) => format!("{}/{}", node.uid, owner.uid),
        };
        Id {
            action: self.action.name(),
            about,
        }
    }

    /// Returns a follow-up task with the same cause.
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
            Self::Finalize(_) => "collect dependants",
            Self::Report(..) => "report owner reference",
        }
    }
}

/// Performs a task. A panic counts as a failure.
pub(super) async fn perform(registry: &Registry, task: Task, graph: GraphState) -> (Task, Outcome) {
    let (span, context) = (span(&task), &context(&task));
    let action = async {
        match &task.action {
            Action::Attempt(node) => attempt::attempt(registry, context, node, graph).await,
            Action::Finalize(node) => owner::finalize(registry, context, node, graph).await,
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
    debug!(task = ?task.id(), %error, "a task failed and will be retried");
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
