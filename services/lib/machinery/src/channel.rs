//! The one place where a connection to the gateway is made.

use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

use crate::gateway::{Error, Settings};

/// A dead peer is found out after at most these two, also while nothing is being said.
const KEEPALIVE_EVERY: Duration = Duration::from_secs(5);
const KEEPALIVE_WITHIN: Duration = Duration::from_secs(5);
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// HTTP/2's default of 64 KiB would stall a burst of watch events once per round trip.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Connects when first used, and again whenever the connection is lost.
pub(crate) fn open(settings: &Settings) -> Result<Channel, Error> {
    Ok(endpoint(&settings.address)?.connect_lazy())
}

/// How to connect, for those who bring their own transport.
pub(crate) fn endpoint(address: &str) -> Result<Endpoint, Error> {
    let endpoint = Endpoint::from_shared(address.to_owned()).map_err(|source| Error::Address {
        address: address.to_owned(),
        source,
    })?;
    Ok(endpoint
        .connect_timeout(CONNECT_WITHIN)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE_EVERY)
        .keep_alive_timeout(KEEPALIVE_WITHIN)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW))
}
