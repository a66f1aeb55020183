//! The gRPC health checking protocol (`grpc.health.v1`).

use std::pin::Pin;

use axum::Router;
use futures::stream::{self, Stream, StreamExt};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{self, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::health::Health;

/// The service `grpc.health.v1.Health`. The status is that of the process, whatever service name is asked for.
pub fn router(health: Health) -> Router {
    Router::new().route_service("/grpc.health.v1.Health/{method}", HealthServer::new(health))
}

#[tonic::async_trait]
impl health_server::Health for Health {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(response(self.is_ready())))
    }

    async fn watch(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let changes = stream::unfold(self.changes(), |mut changes| async move {
            Some((changes.next().await?, changes))
        });
        Ok(Response::new(
            changes.map(|ready| Ok(response(ready))).boxed(),
        ))
    }
}

fn response(ready: bool) -> HealthCheckResponse {
    let status = if ready {
        ServingStatus::Serving
    } else {
        ServingStatus::NotServing
    };
    HealthCheckResponse {
        status: status.into(),
    }
}

#[cfg(test)]
mod tests {
    use tonic_health::pb::health_client::HealthClient;

    use super::*;

    #[tokio::test]
    async fn grpc_health_returns_readiness_and_watches_its_changes_until_shutdown() {
        let health = Health::default();
        let mut client = HealthClient::new(router(health.clone()));
        let status = client
            .check(HealthCheckRequest::default())
            .await
            .unwrap()
            .into_inner()
            .status();
        assert_eq!(status, ServingStatus::NotServing);

        let mut watch = client
            .watch(HealthCheckRequest::default())
            .await
            .unwrap()
            .into_inner();
        let mut next = async || {
            watch
                .message()
                .await
                .unwrap()
                .map(|message| message.status())
        };
        assert_eq!(next().await, Some(ServingStatus::NotServing));
        health.check("etcd").pass();
        assert_eq!(next().await, Some(ServingStatus::Serving));
        health.close();
        assert_eq!(next().await, Some(ServingStatus::NotServing));
        assert_eq!(next().await, None, "the watch ends at shutdown");
    }
}
