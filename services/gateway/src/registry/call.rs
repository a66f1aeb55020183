//! What a request brings beside its object: who asks, under which lease term, with what effect.

use setpoint_proto::lineage::TRACEPARENT;
use setpoint_proto::{ApiError, Because, Caller, Cause, FENCE, Lineage, Reason};

use crate::access::Identity;
use crate::store::Fence;

/// One request's circumstances.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Who asks.
    pub user: Identity,
    /// The field manager or service; becomes the writer of the [`Cause`].
    pub manager: String,
    /// Go through everything, but write nothing.
    pub dry_run: bool,
    /// Commit only while this lease term stands.
    pub fence: Option<Fence>,
    /// The cascade that the request belongs to.
    pub lineage: Lineage,
    /// Who reports which of the spans that it is below were exported.
    pub caller: Option<Caller>,
}

impl Call {
    /// The circumstances that headers tell; `header` looks one up by its lower-case name.
    ///
    /// # Errors
    /// `BadRequest` when the fence is malformed: a write must not commit because its fence could not be read.
    pub fn from_headers<'a>(
        header: impl Fn(&'static str) -> Option<&'a str>,
    ) -> Result<Self, ApiError> {
        Ok(Self {
            fence: header(FENCE).map(parse_fence).transpose()?,
            lineage: Lineage::below(header(TRACEPARENT)),
            ..Self::default()
        })
    }

    /// The same call by that field manager.
    #[must_use]
    pub fn by(mut self, manager: impl Into<String>) -> Self {
        self.manager = manager.into();
        self
    }

    /// The same call, in the cascade that its message names, if it does.
    #[must_use]
    pub fn within(mut self, because: Option<&Because>) -> Self {
        if let Some(because) = because {
            self.lineage = Lineage::of(because);
            self.caller = Caller::of(because);
        }
        self
    }

    /// The same call, made because of that write.
    #[must_use]
    pub fn after(mut self, cause: &Cause) -> Self {
        self.lineage = Lineage::after(cause);
        self
    }

    /// The same call, without effect.
    #[must_use]
    pub fn dry(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// What is stored with a write made now.
    pub(super) fn cause(&self) -> Cause {
        let term = self.fence.as_ref().map_or(0, |fence| fence.term);
        Cause::current(&self.lineage, self.manager.clone(), term)
    }
}

fn parse_fence(text: &str) -> Result<Fence, ApiError> {
    let mut parts = text.split('/');
    let parsed = (|| {
        let fence = Fence {
            namespace: parts.next()?.to_owned(),
            lease: parts.next().filter(|lease| !lease.is_empty())?.to_owned(),
            term: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(fence)
    })();
    parsed.ok_or_else(|| {
        let message =
            format!("malformed {FENCE} {text:?}: it should read <namespace>/<lease>/<term>");
        ApiError::new(Reason::BadRequest, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fenced(value: &str) -> Result<Call, ApiError> {
        Call::from_headers(|name| (name == FENCE).then_some(value))
    }

    #[test]
    fn what_a_message_says_of_its_cascade_goes_before_the_header() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let call = Call::from_headers(|name| (name == TRACEPARENT).then_some(header)).unwrap();
        let call = call.within(None);
        assert_eq!(call.lineage.traceparent, header.parse().ok());
        let because = Because {
            began_ns: 5,
            depth: 2,
            caller: 7,
            ..Because::default()
        };
        let call = call.within(Some(&because));
        assert_eq!(call.lineage, Lineage::of(&because));
        assert_eq!(call.lineage.depth, 2);
        assert_eq!(call.caller.map(|caller| caller.id), Some(7));
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
    fn a_fence_that_cannot_be_read_refuses_the_request() {
        for text in ["", "a/b", "a//1", "a/b/x", "a/b/1/2", "a/b/-1"] {
            assert_eq!(
                fenced(text).unwrap_err().reason,
                Reason::BadRequest,
                "{text}"
            );
        }
    }
}
