//! The parameters of a request that are common to all verbs: user, field manager, fence and trace.

use setpoint_model::replicas::NODE_AGENT;
use setpoint_model::{Fence, users};
use setpoint_proto::trace::TRACEPARENT;
use setpoint_proto::{ApiError, Cause, FENCE, Reason, TraceContext};
use setpoint_telemetry::Span;

use setpoint_kinds::Identity;

use crate::request::authorization::is_master;

/// The context of a request. By default, its user is nobody.
#[derive(Clone, Debug, Default)]
pub struct RequestContext {
    /// The authenticated user.
    pub user: Identity,
    /// The field manager or service; becomes the writer of the [`Cause`].
    pub manager: String,
    /// Whether everything but the write itself is done.
    pub dry_run: bool,
    /// The lease term that must be current when the write commits.
    pub fence: Option<Fence>,
    /// The trace of the cascade that the request belongs to.
    pub trace: TraceContext,
}

impl RequestContext {
    /// Returns the context of a request that the server makes by itself.
    pub fn of_server() -> Self {
        Self::default().as_user(&Identity::server())
    }

    /// Returns the context from headers; `header` looks one up by its lower-case name.
    ///
    /// # Errors
    /// `BadRequest` when the fence is malformed: a write must not commit because its fence could not be read.
    pub fn from_headers<'a>(
        header: impl Fn(&'static str) -> Option<&'a str>,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            fence: header(FENCE).map(parse_fence).transpose()?,
            trace: TraceContext::from_header(header(TRACEPARENT)),
            ..Self::default()
        })
    }

    /// Sets the field manager.
    #[must_use]
    pub fn by(mut self, manager: impl Into<String>) -> Self {
        self.manager = manager.into();
        self
    }

    /// Sets the authenticated user.
    #[must_use]
    pub fn as_user(mut self, user: &Identity) -> Self {
        self.user.clone_from(user);
        self
    }

    /// Sets the trace to that of the request message, if it has one.
    #[must_use]
    pub fn within(mut self, trace: Option<TraceContext>) -> Self {
        if let Some(trace) = trace {
            self.trace = trace.validated();
        }
        self
    }

    /// Sets whether this is a dry run.
    #[must_use]
    pub fn dry(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Returns the cause that is stored with a write of this request.
    ///
    /// A user chooses field managers and fences freely, as in Kubernetes; a fence is only a precondition, and does no
    /// more than make the write fail. In the cause, a service writes under its name and in its term. Another user has
    /// its own name before that of the manager, such as `jane/kubectl`, and no term.
    pub(crate) fn cause(&self) -> Cause {
        let trace = self.trace.within(Span::current().traceparent());
        match speaks_as(&self.user, &self.manager) {
            true => {
                let term = self.fence.as_ref().map_or(0, |fence| fence.term);
                trace.cause(self.manager.clone(), term)
            }
            false => trace.cause(format!("{}/{}", self.user.name, self.manager), 0),
        }
    }
}

/// Returns whether a user may write under a name alone: a service or controller under its own, an agent of nodes under
/// that of a replica of `node-agent`, an administrator under any: the loops of the gateway are among them.
fn speaks_as(user: &Identity, name: &str) -> bool {
    let is_in = |group: &str| user.groups.iter().any(|one| one == group);
    let own = user.name.strip_prefix(users::PREFIX) == Some(name);
    let of_agent = name.strip_prefix(NODE_AGENT);
    let is_replica = of_agent.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    let is_agent = is_in(users::NODES) || is_in(users::SIMULATED_NODES);
    own || (is_agent && is_replica) || is_master(user)
}

fn parse_fence(text: &str) -> Result<Fence, ApiError> {
    text.parse().map_err(|malformed| {
        let message = format!("malformed {FENCE} {text:?}: {malformed}");
        ApiError::new(Reason::BadRequest, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fenced(value: &str) -> Result<RequestContext, ApiError> {
        RequestContext::from_headers(|name| (name == FENCE).then_some(value))
    }

    #[test]
    fn the_trace_context_of_a_message_overrides_the_header() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context =
            RequestContext::from_headers(|name| (name == TRACEPARENT).then_some(header)).unwrap();
        let context = context.within(None);
        assert_eq!(context.trace.parent, header.parse().ok());
        let trace = TraceContext {
            parent: None,
            began_ns: 5,
            depth: 2,
        };
        assert_eq!(context.within(Some(trace)).trace, trace);
    }

    fn written_by(user: &str, groups: &[&str], manager: &str) -> (String, u64) {
        let context = fenced("setpoint-system/scheduler/7").unwrap();
        let user = Identity {
            name: user.into(),
            groups: groups.iter().map(ToString::to_string).collect(),
            ..Identity::default()
        };
        let cause = context.as_user(&user).by(manager).cause();
        (cause.writer, cause.term)
    }

    #[test]
    fn nobody_writes_under_the_name_or_in_the_term_of_a_service_but_itself() {
        let scheduler = ("scheduler".to_owned(), 7);
        for (user, groups) in [
            ("system:setpoint:scheduler", &[][..]),
            ("system:admin", &["system:masters"]),
        ] {
            assert_eq!(written_by(user, groups, "scheduler"), scheduler);
        }
        for (user, groups) in [
            ("jane", &["system:authenticated"][..]),
            ("scheduler", &[]),
            ("system:setpoint:job-controller", &["system:setpoint"]),
            ("system:node:a", &["system:nodes"]),
            ("system:serviceaccount:default:scheduler", &[]),
        ] {
            let writer = format!("{user}/scheduler");
            assert_eq!(written_by(user, groups, "scheduler"), (writer, 0));
        }
        let agent = written_by("system:node:a", &["system:nodes"], "node-agent-0");
        assert_eq!(agent.0, "node-agent-0");
        assert_eq!(written_by("jane", &[], "node-agent").0, "jane/node-agent");
    }

    #[test]
    fn a_fence_names_a_lease_and_its_term() {
        let fence = fenced("setpoint-system/scheduler/7")
            .unwrap()
            .fence
            .unwrap();
        let read = (fence.namespace.as_str(), fence.lease.as_str(), fence.term);
        assert_eq!(read, ("setpoint-system", "scheduler", 7));
    }

    #[test]
    fn a_malformed_fence_is_a_bad_request() {
        for text in ["", "a/b", "a//1", "a/b/x", "a/b/1/2", "a/b/-1"] {
            assert_eq!(
                fenced(text).unwrap_err().reason,
                Reason::BadRequest,
                "{text}"
            );
        }
    }
}
