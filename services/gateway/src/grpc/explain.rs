//! The service `setpoint.v1.Explain`: why an object is as it is, and how it came to be so.

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_codec::{Difference, Kind, kinds};
use setpoint_model::Verb;
use setpoint_proto::setpoint::explain_server::Explain;
use setpoint_proto::setpoint::{
    Change, HistoryRequest, HistoryResponse, Subject, Version, WhyRequest, WhyResponse,
};
use setpoint_proto::{ApiError, Reason};
use tonic::{Extensions, Request, Response, Status};

use super::request::{bad, context};
use super::telemetry::About;
use crate::explain::history;
use crate::explain::history::{End, What};
use crate::explain::why;
use crate::flow_control::Seat;
use crate::registry::{Registry, Target};

/// How many versions are answered when nobody says how many.
const VERSIONS: usize = 50;
/// Each version costs a read of the store.
const MOST_VERSIONS: usize = 1000;

/// The service over a registry.
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
        let (metadata, extensions, asked) = request.into_parts();
        let context = context(&metadata, None)?;
        let target = target(asked.subject.unwrap_or_default())?;
        let _seat = seat(&extensions, &target).await?;
        let limit = match usize::try_from(asked.limit) {
            Ok(0) | Err(_) => VERSIONS,
            Ok(limit) => limit.min(MOST_VERSIONS),
        };
        let history = self.registry.history(&context, &target, limit).await?;
        let versions = history.versions.into_iter();
        Ok(HistoryResponse {
            subject: Some(subject(&target)),
            kind: target.kind.kind.clone(),
            versions: versions.map(|one| version(one, asked.diff)).collect(),
            ends: ends(history.end).to_owned(),
        })
    }

    async fn answer_why(&self, request: Request<WhyRequest>) -> Result<WhyResponse, ApiError> {
        let (metadata, extensions, asked) = request.into_parts();
        let context = context(&metadata, None)?;
        let target = target(asked.subject.unwrap_or_default())?;
        let _seat = seat(&extensions, &target).await?;
        why::explain(&self.registry, &context, &target, Timestamp::now()).await
    }
}

/// Takes a seat among the reads: an answer is made of many.
async fn seat(extensions: &Extensions, target: &Target) -> Result<Option<Seat>, ApiError> {
    About::target(Verb::List, target).seat(extensions).await
}

/// The object that a user names in any way.
fn target(asked: Subject) -> Result<Target, ApiError> {
    let kind = kind(&asked.resource)?;
    if asked.name.is_empty() {
        return Err(bad("name: Required value"));
    }
    let namespace = match kind.namespaced {
        true => asked.namespace.as_str(),
        false => "",
    };
    Target::new(kind, namespace, &asked.name, "")
}

fn kind(name: &str) -> Result<&'static Kind, ApiError> {
    kinds().by_any_name(name).ok_or_else(|| {
        let message = format!("the server doesn't have a resource type {name:?}");
        ApiError::new(Reason::NotFound, message)
    })
}

fn subject(target: &Target) -> Subject {
    Subject {
        resource: target.kind.resource(),
        namespace: target.namespace.clone(),
        name: target.name.clone(),
    }
}

fn version(version: history::Version, values: bool) -> Version {
    let trace = version.cause.as_ref().map(why::trace_id);
    let changes = version.changes.into_iter();
    Version {
        revision: version.revision.to_string(),
        generation: version.generation,
        what: what(version.what).to_owned(),
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

const fn what(what: What) -> &'static str {
    match what {
        What::Created => "created",
        What::Changed => "changed",
        What::Deleted => "deleted",
        What::Found => "found",
    }
}

const fn ends(end: End) -> &'static str {
    match end {
        End::Created => "created",
        End::Compacted => "compacted",
        End::Limit => "limit",
        End::Unknown => "unknown",
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
