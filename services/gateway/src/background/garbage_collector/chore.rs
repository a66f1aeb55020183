//! One thing to do when owners or namespaces go, and how it ended.

use std::time::Duration;

use opentelemetry::trace::SpanBuilder;
use setpoint_proto::meta::OwnerReference;
use setpoint_proto::{ApiError, Cause, Reason};
use setpoint_task::catch_panic;
use setpoint_telemetry::Span;
use tracing::debug;

use super::member::Member;
use super::{attempt, namespace, owner, report};
use crate::registry::{Call, Registry};

/// Something to do, and why: it goes on in the trace of what made it necessary.
pub(super) struct Chore {
    pub task: Task,
    pub because: Option<Cause>,
}

/// Something to do.
#[derive(Clone)]
pub(super) enum Task {
    /// Delete a dependant if none of its owners is left, or take away its references to those that are not.
    Attempt(Member),
    /// Let an owner go, once its dependants are free or gone as its deletion asked.
    End(Member),
    /// Delete what is in this namespace; let it go once it is empty.
    Empty(String),
    /// Tell of an owner reference that can never be resolved.
    Report(Member, OwnerReference),
}

/// Tells chores apart: of two that are alike, one is enough.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id {
    task: &'static str,
    about: String,
}

/// The member's place in the graph when its chore began.
#[derive(Clone, Copy, Default)]
pub(super) struct Standing {
    pub has_dependants: bool,
    pub in_circle: bool,
}

/// The outcome of a chore.
pub(super) enum Outcome {
    Done,
    /// Done, and these are to be done because of it.
    Then(Vec<Task>),
    /// Something has to happen elsewhere first; an event may tell of it earlier than this.
    Later(Duration),
    Failed,
}

impl Chore {
    pub fn id(&self) -> Id {
        let about = match &self.task {
            Task::Attempt(member) | Task::End(member) => member.uid.clone(),
            Task::Empty(namespace) => namespace.clone(),
            Task::Report(member, owner) => format!("{}/{}", member.uid, owner.uid),
        };
        Id {
            task: self.task.name(),
            about,
        }
    }

    /// The same reason, another task.
    pub fn followed_by(&self, task: Task) -> Self {
        Self {
            task,
            because: self.because.clone(),
        }
    }
}

impl Task {
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
    chore: Chore,
    standing: Standing,
) -> (Chore, Outcome) {
    let (span, call) = (span(&chore), &call(&chore));
    let task = async {
        match &chore.task {
            Task::Attempt(member) => attempt::attempt(registry, call, member, standing).await,
            Task::End(member) => owner::end(registry, call, member, standing).await,
            Task::Empty(namespace) => namespace::empty(registry, call, namespace).await,
            Task::Report(member, owner) => report::report(registry, call, member, owner).await,
        }
    };
    let ended = catch_panic("garbage-collector", span.in_scope(task)).await;
    let outcome = match ended {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(error)) => outcome_of(&chore, &error),
        Err(_) => Outcome::Failed,
    };
    (chore, outcome)
}

fn outcome_of(chore: &Chore, error: &ApiError) -> Outcome {
    if error.reason == Reason::NotFound {
        return Outcome::Done;
    }
    debug!(chore = ?chore.id(), %error, "a chore is tried again later");
    Outcome::Failed
}

fn span(chore: &Chore) -> Span {
    let because = chore.because.as_ref();
    let parent = because.and_then(|cause| cause.traceparent);
    let span = |parent| Span::start(SpanBuilder::from_name(chore.task.name()), Some(parent));
    parent.map_or_else(Span::none, span)
}

fn call(chore: &Chore) -> Call {
    let call = Call::default().by("garbage-collector");
    match &chore.because {
        Some(cause) => call.after(cause),
        None => call,
    }
}
