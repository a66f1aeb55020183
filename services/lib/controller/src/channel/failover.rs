//! Moves the client from a gateway that is not ready to one that is.
//!
//! A gateway that has lost its store keeps its connections and fails each call; grpc.health on the same connection
//! reports that. A client disconnects only if another gateway is ready.

use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use futures::future::select_ok;
use tokio::time::{sleep, timeout};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tracing::info;

use super::connector::Connector;
use crate::Backoff;

/// The time that a gateway that shuts down has to close the connection itself, after its last responses.
const GRACE: Duration = Duration::from_millis(500);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The time limit of a health check.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Watches the health of the gateway that the client is connected to, and moves the client if another one is ready.
pub(super) async fn watch_health(channel: Channel, connector: Connector) {
    let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
    loop {
        match follow(channel.clone(), &connector, &mut backoff).await {
            // A gateway without the health service is kept.
            Err(status) if status.code() == Code::Unimplemented => return,
            _ => sleep(backoff.next_delay()).await,
        }
    }
}

async fn follow(
    channel: Channel,
    connector: &Connector,
    backoff: &mut Backoff,
) -> Result<(), Status> {
    let mut client = HealthClient::new(channel);
    let watch = client.watch(HealthCheckRequest::default()).await?;
    let mut health = watch.into_inner();
    while let Some(mut now) = health.message().await? {
        while now.status() != ServingStatus::Serving {
            let leaving = pin!(leave(connector));
            now = tokio::select! {
                biased;
                next = health.message() => match next? {
                    Some(next) => next,
                    None => return Ok(()),
                },
                () = leaving => return Ok(()),
            };
        }
        backoff.reset();
    }
    Ok(())
}

/// Returns once another gateway is ready and the current connection has been closed.
async fn leave(connector: &Connector) {
    let mut backoff = Backoff::new(GRACE, LONGEST_PAUSE);
    sleep(GRACE).await;
    loop {
        let others = connector.others().await;
        let questions = others
            .into_iter()
            .map(|address| Box::pin(is_ready(address)));
        let questions: Vec<_> = questions.collect();
        // Without another gateway there is nothing to check.
        if !questions.is_empty()
            && let Ok((ready, _)) = select_ok(questions).await
        {
            info!(address = %ready, "the gateway is not ready: connecting to another one");
            return connector.move_to(ready);
        }
        sleep(backoff.next_delay()).await;
    }
}

async fn is_ready(address: SocketAddr) -> Result<SocketAddr, ()> {
    let check = async {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).ok()?;
        let mut health = HealthClient::new(endpoint.connect().await.ok()?);
        let answer = health.check(HealthCheckRequest::default()).await.ok()?;
        (answer.into_inner().status() == ServingStatus::Serving).then_some(address)
    };
    let answer = timeout(ANSWER_WITHIN, check).await;
    answer.ok().flatten().ok_or(())
}
