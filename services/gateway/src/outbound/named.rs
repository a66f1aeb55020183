//! The client of servers whose addresses settings name.

use bytes::Bytes;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;

use super::pool;

/// A client that follows no redirect.
pub(crate) type NamedClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Returns a client of servers that the administrator names: the rules for addresses that objects name do not apply.
pub(crate) fn named_client(tls: ClientConfig) -> NamedClient {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .enable_http2()
        .wrap_connector(tcp);
    pool().build(connector)
}
