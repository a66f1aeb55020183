//! The gRPC service `setpoint.v1.Node`: logs, streams and resource usage of containers.

mod idle;
mod port_forward;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use setpoint_host::gateways_only;
use setpoint_model::Key;
use setpoint_proto::core::{ContainerStatus, Pod};
use setpoint_proto::setpoint::node_server::{Node, NodeServer};
use setpoint_proto::setpoint::{
    ContainerInput, LogsPiece, LogsRequest, OpenContainer, PortForwardInput, UsageRequest,
    UsageResponse,
};
use setpoint_proto::{ApiError, Reason};
use setpoint_runtime::log::limited;
use setpoint_runtime::{
    Container, ContainerId, Error, LogOptions, Outputs, Runtime, Sandbox, State,
};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use self::idle::Idle;
use crate::node::Pods;
use crate::node::usage::Meter;

/// Serves what the agent knows about its containers.
pub struct NodeService<R> {
    pods: Arc<Pods<R>>,
    meter: Arc<Meter<R>>,
    /// The time for which a stream may carry nothing; zero for any time.
    idle: Duration,
    shutdown: CancellationToken,
}

impl<R: Runtime> NodeService<R> {
    /// Returns the routes of the service, for the process's listener. Gateways alone may call it.
    pub fn router(
        pods: Arc<Pods<R>>,
        meter: Arc<Meter<R>>,
        idle: Duration,
        shutdown: CancellationToken,
    ) -> Router {
        let service = NodeServer::new(Self {
            pods,
            meter,
            idle,
            shutdown,
        });
        gateways_only::calls(Router::new().route_service("/setpoint.v1.Node/{method}", service))
    }

    /// Returns a Pod of this agent and its sandbox.
    fn sandbox(
        &self,
        namespace: &str,
        name: &str,
        uid: &str,
    ) -> Result<(Pod, Option<Sandbox>), ApiError> {
        let key = Key::new(namespace, name);
        let view = self.pods.get(&key);
        let view = view.filter(|view| uid.is_empty() || self.pods.is_of_uid(view, uid));
        let pod = view.map(|view| view.pod());
        let pod =
            pod.ok_or_else(|| ApiError::new(Reason::NotFound, format!("pods {name:?} not found")))?;
        let own = self.pods.sandbox(&key, &pod.metadata.uid);
        Ok((pod, own))
    }

    /// Returns the responses for the output of a process, as long as they or the input carry something.
    fn limited(&self, idle: Idle, output: Outputs) -> streams::Responses {
        let output = idle.watch(output).boxed();
        idle.limit(streams::responses(output, &self.shutdown))
            .boxed()
    }

    /// Returns the attempt at a container that runs.
    fn running(&self, open: &OpenContainer) -> Result<ContainerId, ApiError> {
        let (_, sandbox) = self.sandbox(&open.namespace, &open.pod, &open.uid)?;
        let latest = sandbox.as_ref().and_then(|own| own.latest(&open.container));
        let running = latest.filter(|latest| matches!(latest.state, State::Running { .. }));
        let running = running.map(|running| running.id.clone());
        running.ok_or_else(|| {
            let message = format!("container not found ({:?})", open.container);
            ApiError::new(Reason::NotFound, message)
        })
    }

    /// Returns the requested attempt at the container.
    fn container(&self, request: &LogsRequest) -> Result<Container, ApiError> {
        let (pod, own) = self.sandbox(&request.namespace, &request.pod, "")?;
        let mut attempts = own
            .iter()
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
    type ExecStream = streams::Responses;
    type AttachStream = streams::Responses;
    type PortForwardStream = port_forward::Responses;

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
        let log = self.pods.runtime.log(&container.id, &options).await;
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
        request: Request<Streaming<ContainerInput>>,
    ) -> Result<Response<Self::ExecStream>, Status> {
        let (open, input) = streams::open(request.into_inner()).await?;
        if open.command.is_empty() {
            let message = "you must specify at least 1 command for the container";
            return Err(streams::bad_request(message).into());
        }
        let (id, runtime) = (self.running(&open)?, &self.pods.runtime);
        let idle = Idle::new(self.idle);
        let input = idle.watch(input).boxed();
        let output = runtime.exec(&id, &open.command, streams::streams(&open), input);
        let output = output.await.map_err(to_api_error)?;
        Ok(Response::new(self.limited(idle, output)))
    }

    async fn attach(
        &self,
        request: Request<Streaming<ContainerInput>>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let (open, input) = streams::open(request.into_inner()).await?;
        if !open.command.is_empty() {
            return Err(streams::bad_request("attach runs no command").into());
        }
        let (id, runtime) = (self.running(&open)?, &self.pods.runtime);
        let idle = Idle::new(self.idle);
        let input = idle.watch(input).boxed();
        let output = runtime.attach(&id, streams::streams(&open), input).await;
        let output = output.map_err(to_api_error)?;
        Ok(Response::new(self.limited(idle, output)))
    }

    async fn port_forward(
        &self,
        request: Request<Streaming<PortForwardInput>>,
    ) -> Result<Response<Self::PortForwardStream>, Status> {
        let mut requests = request.into_inner();
        let (open, port) = port_forward::open(&mut requests).await?;
        let (pod, sandbox) = self.sandbox(&open.namespace, &open.pod, &open.uid)?;
        let Some(sandbox) = sandbox.filter(|sandbox| sandbox.ready) else {
            let message = format!(
                "unable to forward port because pod is not running. Current status={}",
                pod.status.phase
            );
            return Err(streams::bad_request(&message).into());
        };
        let uid = &sandbox.config.uid;
        let runtime = &self.pods.runtime;
        let connection = match open.loopback {
            true => runtime.connect_loopback(uid, port).await,
            false => runtime.connect(uid, port).await,
        };
        let connection = connection.map_err(|error| {
            let error = to_api_error(error);
            let message = format!(
                "error forwarding port {port} to pod {}, uid {}: {}",
                open.pod, uid, error.message
            );
            ApiError::new(error.reason, message)
        })?;
        let idle = Idle::new(self.idle);
        let responses = port_forward::forward(connection, requests, idle.clone());
        let responses = idle.clone().limit(idle.watch(responses));
        Ok(Response::new(
            streams::until_shutdown(responses, &self.shutdown).boxed(),
        ))
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
        .chain(&status.container_statuses)
        .chain(&status.ephemeral_container_statuses);
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
        Error::Unsupported(_) | Error::NotRunning(_) => Reason::BadRequest,
        Error::Unknown(_) => Reason::NotFound,
        Error::Connect(_) => Reason::ServiceUnavailable,
        _ => Reason::InternalError,
    };
    let cause = std::error::Error::source(&error).map(ToString::to_string);
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    ApiError::new(reason, format!("{error}{cause}"))
}

#[cfg(test)]
mod tests;
