//! The gRPC service `setpoint.v1.Node`: logs and resource usage of containers.

use std::sync::Arc;

use axum::Router;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use setpoint_model::Key;
use setpoint_proto::core::{ContainerStatus, Pod};
use setpoint_proto::setpoint::node_server::{Node, NodeServer};
use setpoint_proto::setpoint::{
    ContainerInput, ContainerOutput, LogsPiece, LogsRequest, PortForwardInput, PortForwardOutput,
    UsageRequest, UsageResponse,
};
use setpoint_proto::{ApiError, Reason};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use crate::agent::Agent;
use crate::runtime::log::limited;
use crate::runtime::{Container, Error, LogOptions, Runtime, State};
use crate::usage::Meter;

/// Serves what the agent knows about its containers.
pub struct NodeService<R> {
    agent: Arc<Agent<R>>,
    meter: Arc<Meter<R>>,
    shutdown: CancellationToken,
}

impl<R: Runtime> NodeService<R> {
    /// Returns the routes of the service, for the process's listener.
    pub fn router(
        agent: Arc<Agent<R>>,
        meter: Arc<Meter<R>>,
        shutdown: CancellationToken,
    ) -> Router {
        let service = NodeServer::new(Self {
            agent,
            meter,
            shutdown,
        });
        Router::new().route_service("/setpoint.v1.Node/{method}", service)
    }

    /// Returns the requested attempt at the container.
    fn container(&self, request: &LogsRequest) -> Result<Container, ApiError> {
        let key = Key::new(&request.namespace, &request.pod);
        let pod = self.agent.pods.get(&key).map(|view| view.pod());
        let pod = pod.ok_or_else(|| {
            ApiError::new(
                Reason::NotFound,
                format!("pods {:?} not found", request.pod),
            )
        })?;
        let sandboxes = self.agent.executor.runtime.sandboxes(&key);
        let own = sandboxes
            .iter()
            .find(|sandbox| sandbox.config.uid == pod.metadata.uid);
        let mut attempts = own
            .into_iter()
            .flat_map(|own| own.attempts(&request.container).rev());
        let (last, before) = (attempts.next(), attempts.next());
        if request.previous {
            return before.cloned().ok_or_else(|| previous_not_found(request));
        }
        let begun = last.filter(|last| last.state != State::Starting);
        begun.cloned().ok_or_else(|| not_started(request, &pod))
    }
}

#[tonic::async_trait]
impl<R: Runtime> Node for NodeService<R> {
    type LogsStream = BoxStream<'static, Result<LogsPiece, Status>>;
    type ExecStream = BoxStream<'static, Result<ContainerOutput, Status>>;
    type AttachStream = BoxStream<'static, Result<ContainerOutput, Status>>;
    type PortForwardStream = BoxStream<'static, Result<PortForwardOutput, Status>>;

    async fn logs(
        &self,
        request: Request<LogsRequest>,
    ) -> Result<Response<Self::LogsStream>, Status> {
        let request = request.into_inner();
        let container = self.container(&request)?;
        let whole = |number: i64| u64::try_from(number).unwrap_or_default();
        let options = LogOptions {
            follow: request.follow,
            timestamps: request.timestamps,
            tail: request.tail_lines.map(whole),
            since: request.since_seconds,
        };
        let log = self
            .agent
            .executor
            .runtime
            .log(&container.id, &options)
            .await;
        let mut log = log.map_err(to_api_error)?;
        if let Some(limit) = request.limit_bytes {
            log = limited(log, whole(limit));
        }
        let pieces = log.map(|piece| match piece {
            Ok(data) => Ok(LogsPiece { data }),
            Err(error) => Err(Status::from(to_api_error(error))),
        });
        let ended = self.shutdown.clone().cancelled_owned();
        Ok(Response::new(pieces.take_until(ended).boxed()))
    }

    async fn usage(&self, _: Request<UsageRequest>) -> Result<Response<UsageResponse>, Status> {
        let pods = self.meter.usage();
        Ok(Response::new(UsageResponse { pods }))
    }

    async fn exec(
        &self,
        _: Request<Streaming<ContainerInput>>,
    ) -> Result<Response<Self::ExecStream>, Status> {
        Err(Status::unimplemented("this node does not run commands"))
    }

    async fn attach(
        &self,
        _: Request<Streaming<ContainerInput>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        Err(Status::unimplemented("this node does not attach"))
    }

    async fn port_forward(
        &self,
        _: Request<Streaming<PortForwardInput>>,
    ) -> Result<Response<Self::PortForwardStream>, Status> {
        Err(Status::unimplemented("this node does not forward ports"))
    }
}

fn previous_not_found(request: &LogsRequest) -> ApiError {
    let LogsRequest { container, pod, .. } = request;
    let message = format!("previous terminated container {container:?} in pod {pod:?} not found");
    ApiError::new(Reason::BadRequest, message)
}

fn not_started(request: &LogsRequest, pod: &Pod) -> ApiError {
    let status = &pod.status;
    let mut all = status
        .init_container_statuses
        .iter()
        .chain(&status.container_statuses);
    let found = all.find(|status| status.name == request.container);
    let LogsRequest { container, pod, .. } = request;
    let why = match found.and_then(reason) {
        Some("ErrImagePull" | "ImagePullBackOff") => "trying and failing to pull image",
        Some(reason) => reason,
        None => {
            let message = format!("container {container:?} in pod {pod:?} is not available");
            return ApiError::new(Reason::BadRequest, message);
        }
    };
    let message = format!("container {container:?} in pod {pod:?} is waiting to start: {why}");
    ApiError::new(Reason::BadRequest, message)
}

fn reason(status: &ContainerStatus) -> Option<&str> {
    let waiting = status.state.waiting.as_ref()?;
    Some(waiting.reason.as_str())
}

fn to_api_error(error: Error) -> ApiError {
    let reason = match error {
        Error::Unsupported(_) => Reason::BadRequest,
        Error::Unknown(_) => Reason::NotFound,
        _ => Reason::InternalError,
    };
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    ApiError::new(reason, format!("{error}{cause}"))
}
