//! Handlers that ask gRPC's health service.

use std::io;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use setpoint_proto::core::GrpcAction;
use setpoint_runtime::Runtime;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::service_fn;

use super::{Outcome, Target, VERSION, timed_out};

impl<R: Runtime> Target<R> {
    /// Asks the health service at a port of the Pod. As in the kubelet, all errors are failures of the container.
    pub(super) async fn probe_grpc(&self, action: &GrpcAction, limit: Duration) -> Outcome {
        let address = format!("{}:{}", self.ip, action.port);
        match timeout(limit, self.check_health(action, &address)).await {
            Ok(Ok(())) => Outcome::Success,
            Ok(Err(message)) => Outcome::Failure(message),
            Err(_) => Outcome::Failure(format!(
                "timeout: failed to connect service {address:?} {}: context deadline exceeded",
                timed_out(limit)
            )),
        }
    }

    async fn check_health(&self, action: &GrpcAction, address: &str) -> Result<(), String> {
        let service = action.service.clone().unwrap_or_default();
        let channel = self.channel(action.port, address).await;
        let channel = channel
            .map_err(|error| format!("error: failed to connect service at {address:?}: {error}"))?;
        let answer = HealthClient::new(channel)
            .check(HealthCheckRequest { service })
            .await;
        let status = answer
            .map_err(|status| failed(&status))?
            .into_inner()
            .status();
        match status.as_str_name() {
            "SERVING" => Ok(()),
            other => Err(format!("service unhealthy (responded with {other:?})")),
        }
    }

    async fn channel(&self, port: i32, address: &str) -> Result<Channel, String> {
        let port = u16::try_from(port).map_err(|error| error.to_string())?;
        let connection = self.runtime.connect(&self.id.uid, port).await;
        let mut connection = Some(connection.map_err(|error| error.to_string())?);
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .and_then(|endpoint| endpoint.user_agent(format!("kube-probe/{VERSION}")))
            .map_err(|error| error.to_string())?;
        let once = service_fn(move |_| {
            let connection = connection.take().map(TokioIo::new);
            async move { connection.ok_or(io::Error::from(io::ErrorKind::NotConnected)) }
        });
        let channel = endpoint.connect_with_connector(once).await;
        channel.map_err(|error| error.to_string())
    }
}

fn failed(status: &Status) -> String {
    match status.code() {
        Code::Unimplemented => format!(
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {}",
            status.message()
        ),
        _ => format!("error: health rpc probe failed: {status}"),
    }
}
