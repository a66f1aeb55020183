//! The service `setpoint.v1.Explain`: the state of an object and its history.

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_codec::Difference;
use setpoint_proto::setpoint::explain_server::Explain;
use setpoint_proto::setpoint::{
    Change, HistoryRequest, HistoryResponse, ObjectRef, Version, WhyRequest, WhyResponse,
};
use setpoint_proto::{ApiError, Reason};
use tonic::{Request, Response, Status};

use super::method::{HISTORY, Method, WHY};
use super::request::{Caller, bad_request, open, stored};
use super::telemetry::Call;
use crate::explain::{history, why};
use crate::registry::{Registry, Target};
use crate::request::flow_control::Admission;

/// The number of versions without a limit in the request.
const VERSIONS: usize = 50;
/// The maximum number of versions. Each costs a read of the store.
const VERSIONS_MAX: usize = 1000;

/// The implementation over a registry.
pub(super) struct Service {
    registry: Arc<Registry>,
}

impl Service {
    pub(super) fn new(registry: Arc<Registry>) -> Self {
        Self { registry }
    }

    async fn answer_history(
        &self,
        request: Request<HistoryRequest>,
    ) -> Result<HistoryResponse, ApiError> {
        let (caller, request) = open(request, |_| None)?;
        let target = self.target(request.subject.unwrap_or_default())?;
        let (caller, _seat) = admit(&self.registry, HISTORY, caller, &target).await?;
        let limit = match usize::try_from(request.limit) {
            Ok(0) | Err(_) => VERSIONS,
            Ok(limit) => limit.min(VERSIONS_MAX),
        };
        let history = self
            .registry
            .history(&caller.context, &target, limit)
            .await?;
        let versions = history.versions.into_iter();
        Ok(HistoryResponse {
            subject: Some(target.key().in_resource(target.kind.resource())),
            kind: target.kind.kind.clone(),
            versions: versions.map(|one| version(one, request.diff)).collect(),
            ends: history.end.into(),
        })
    }

    /// Returns the target that a user names by any name of its kind.
    fn target(&self, subject: ObjectRef) -> Result<Target, ApiError> {
        let name = &subject.resource;
        let kind = self.registry.cache().kinds().by_any_name(name);
        let kind = stored(kind.ok_or_else(|| {
            let message = format!("the server doesn't have a resource type {name:?}");
            ApiError::new(Reason::NotFound, message)
        })?)?;
        if subject.name.is_empty() {
            return Err(bad_request("name: Required value"));
        }
        let namespace = match kind.namespaced {
            true => subject.namespace.as_str(),
            false => "",
        };
        Target::new(kind, namespace, &subject.name, "")
    }

    async fn answer_why(&self, request: Request<WhyRequest>) -> Result<WhyResponse, ApiError> {
        let (caller, request) = open(request, |_| None)?;
        let target = self.target(request.subject.unwrap_or_default())?;
        let (caller, _seat) = admit(&self.registry, WHY, caller, &target).await?;
        why::explain(&self.registry, &caller.context, &target, Timestamp::now()).await
    }
}

/// Identifies the caller, takes a seat, and authorizes the call.
async fn admit(
    registry: &Registry,
    method: Method,
    caller: Caller,
    target: &Target,
) -> Result<(Caller, Admission), ApiError> {
    let call = Call::new(method, target);
    let caller = call.identified(registry, caller).await?;
    let seat = call.seat(registry, &caller).await?;
    call.authorize(registry, &caller.context).await?;
    Ok((caller, seat))
}

fn version(version: history::Version, values: bool) -> Version {
    let trace = version.cause.as_ref().map(why::trace_id);
    let changes = version.changes.into_iter();
    Version {
        revision: version.revision.to_string(),
        generation: version.generation,
        what: version.write.into(),
        trace_id: trace.unwrap_or_default(),
        cause: version.cause,
        changes: changes.map(|one| change(one, values)).collect(),
    }
}

fn change(difference: Difference, values: bool) -> Change {
    let text = |value: Option<serde_json::Value>| {
        let value = value.filter(|_| values);
        value.map(|value| value.to_string()).unwrap_or_default()
    };
    Change {
        path: difference.path,
        before: text(difference.before),
        after: text(difference.after),
    }
}

#[tonic::async_trait]
impl Explain for Service {
    async fn why(&self, request: Request<WhyRequest>) -> Result<Response<WhyResponse>, Status> {
        Ok(Response::new(self.answer_why(request).await?))
    }

    async fn history(
        &self,
        request: Request<HistoryRequest>,
    ) -> Result<Response<HistoryResponse>, Status> {
        Ok(Response::new(self.answer_history(request).await?))
    }
}
