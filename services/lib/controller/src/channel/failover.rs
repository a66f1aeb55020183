//! Moves the client from a gateway that is not ready to one that is.
//!
//! A gateway that has lost its store keeps its connections and fails each call; grpc.health on the same connection
//! reports that. A client disconnects only if another gateway is ready.

use std::io;
use std::pin::pin;
use std::time::Duration;

use futures::future::select_ok;
use hyper_util::rt::TokioIo;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint, Uri};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tower::service_fn;
use tracing::info;

use super::addresses::Destination;
use super::connector::{Connection, Connector};
use crate::Backoff;

/// The time that a gateway that shuts down has to close the connection itself, after its last responses.
const GRACE: Duration = Duration::from_millis(500);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The time limit of a health check, with its connection.
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
            .map(|other| Box::pin(is_ready(connector, other)));
        let questions: Vec<_> = questions.collect();
        // Without another gateway there is nothing to check.
        if !questions.is_empty()
            && let Ok((ready, _)) = select_ok(questions).await
        {
            info!(address = %ready.address, "the gateway is not ready: connecting to another one");
            return connector.move_to(ready);
        }
        sleep(backoff.next_delay()).await;
    }
}

async fn is_ready(connector: &Connector, other: Destination) -> Result<Destination, ()> {
    let check = async {
        let connection = connector.dial(&other, &CancellationToken::new()).await;
        let channel = over(connection.ok()?, &other).await.ok()?;
        let answer = HealthClient::new(channel)
            .check(HealthCheckRequest::default())
            .await;
        (answer.ok()?.into_inner().status() == ServingStatus::Serving).then_some(())
    };
    let answer = timeout(ANSWER_WITHIN, check).await;
    answer.ok().flatten().map(|()| other).ok_or(())
}

/// Returns a channel that has this connection and makes no other.
async fn over(
    connection: Connection,
    destination: &Destination,
) -> Result<Channel, tonic::transport::Error> {
    let mut connection = Some(TokioIo::new(connection));
    let once = service_fn(move |_: Uri| {
        let connection = connection.take();
        async move { connection.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected)) }
    });
    Endpoint::from_shared(format!("http://{}", destination.address))?
        .connect_with_connector(once)
        .await
}
