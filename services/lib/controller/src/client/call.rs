//! Calls: their trace context, fence, user, time limit and metrics.

use std::future::Future;
use std::time::Duration;

use opentelemetry::KeyValue;
use setpoint_model::Verb;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::trace::Traced;
use setpoint_proto::{ApiError, FENCE, Reason, TraceContext};
use setpoint_telemetry::{RPC_SYSTEM, Span};
use setpoint_transport::EarlyEnd;
use tokio::time::{Instant, timeout};
use tonic::{Request, Response, Status};

use super::Client;
use crate::{cascade, metrics};

/// Sends a request by the client's method of this name.
macro_rules! rpc {
    ($method:ident) => {
        |mut client: ObjectsClient<EarlyEnd>, request| async move { client.$method(request).await }
    };
}
pub(super) use rpc;

impl Client {
    /// Sends a request and returns its response, within the time limit. That of a watch ends with its first response.
    pub(super) async fn call<Q, A, F>(
        &self,
        verb: Verb,
        body: Q,
        send: impl FnOnce(ObjectsClient<EarlyEnd>, Request<Q>) -> F,
    ) -> Result<A, ApiError>
    where
        Q: Traced,
        F: Future<Output = Result<Response<A>, Status>> + Send,
    {
        let started = Instant::now();
        let span = Span::current();
        if verb != Verb::Get {
            self.describe(verb, &span);
        }
        let sent = send(self.client.clone(), self.request(verb, body, &span));
        let answer = match timeout(self.timeout, sent).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(ApiError::from(status)),
            Err(_) => Err(too_late(self.timeout)),
        };
        let code = answer.as_ref().map_or_else(ApiError::code, |_| 200);
        metrics::called(code, verb.name(), &self.host, started.elapsed());
        answer
    }

    /// Sets the attributes of a call on the span around it.
    fn describe(&self, verb: Verb, span: &Span) {
        span.set_attributes([
            KeyValue::new(RPC_SYSTEM, "grpc"),
            KeyValue::new("rpc.service", "setpoint.v1.Objects"),
            KeyValue::new("rpc.method", verb.method()),
            KeyValue::new("server.address", self.host.clone()),
        ]);
    }

    fn request<Q: Traced>(&self, verb: Verb, mut body: Q, span: &Span) -> Request<Q> {
        let context = cascade::context(span);
        *body.trace() = (context != TraceContext::default()).then_some(context);
        let mut request = Request::new(body);
        if let (Some(fence), true) = (&self.fence, verb != Verb::Get) {
            request.metadata_mut().insert(FENCE, fence.clone());
        }
        if let Some(impersonation) = &self.impersonation {
            impersonation.add_to(request.metadata_mut());
        }
        if let Some(authorization) = &self.authorization {
            let headers = request.metadata_mut();
            headers.insert("authorization", authorization.clone());
        }
        request
    }
}

fn too_late(limit: Duration) -> ApiError {
    let message = format!("the gateway did not answer within {limit:?}");
    ApiError::new(Reason::Timeout, message)
}
