//! The connection to the gateways.
//!
//! A client has one connection, to any of the gateways. When it is lost, the next one is made to the first gateway that
//! accepts it, and watches resume at the revision that they had reached.
//!
//! To a gateway with an address of the scheme `https` the connection has TLS. The client presents its certificate of
//! that moment: a connection outlives the certificate that it began with.

mod addresses;
mod cancellable_stream;
mod connector;
mod failover;

use std::time::Duration;

use setpoint_tls::Credentials;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

use crate::Tasks;
use crate::client::{Error, Settings};
use addresses::Addresses;
use connector::Connector;

/// A dead peer is detected after at most the sum of these two, also on an idle connection.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_WITHIN: Duration = Duration::from_secs(5);
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// HTTP/2's default of 64 KiB would stall a burst of watch events once per round trip.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Returns a channel that connects when first used, and again whenever the connection is lost. Until `stop`, a task
/// watches the gateway's health.
pub(crate) fn open(
    settings: &Settings,
    credentials: Option<Credentials>,
    tasks: &Tasks,
    stop: &CancellationToken,
) -> Result<Channel, Error> {
    let addresses = Addresses::parse(&settings.address, &settings.tls_server_name)?;
    if addresses.need_tls() && credentials.is_none() {
        return Err(Error::NoCredentials {
            address: settings.address.clone(),
        });
    }
    // The authority of every request, whichever gateway answers it.
    let origin = with_keepalive(endpoint_of(addresses.first())?);
    let connector = Connector::new(addresses, credentials);
    let channel = origin.connect_with_connector_lazy(connector.clone());
    let (tasks, looked_after) = (tasks.clone(), channel.clone());
    let looking = async move {
        let start = || failover::watch_health(looked_after.clone(), connector.clone());
        tasks.supervise("channel", "", start).await;
    };
    tokio::spawn(stop.clone().run_until_cancelled_owned(looking));
    Ok(channel)
}

/// Checks that the addresses are URIs with a host.
pub(crate) fn validate(settings: &Settings) -> Result<(), Error> {
    Addresses::parse(&settings.address, &settings.tls_server_name).map(drop)
}

/// Returns the settings of a connection, for callers with a transport of their own.
pub(crate) fn endpoint(address: &str) -> Result<Endpoint, Error> {
    let addresses = Addresses::parse(address, "")?;
    let endpoint = with_keepalive(endpoint_of(addresses.first())?);
    Ok(endpoint.connect_timeout(CONNECT_WITHIN))
}

fn endpoint_of(address: &str) -> Result<Endpoint, Error> {
    Endpoint::from_shared(address.to_owned()).map_err(|source| Error::Address {
        address: address.to_owned(),
        source,
    })
}

fn with_keepalive(endpoint: Endpoint) -> Endpoint {
    endpoint
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_WITHIN)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
}
