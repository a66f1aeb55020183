//! Clients of the library kube.

use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt as _;
use kube::{Client, Config};
use setpoint_tests::Cluster;
use tower::ServiceBuilder;

/// Returns a client of the first gateway, for the administrator.
pub fn kube_client(cluster: &Cluster) -> Client {
    let gateway = cluster.gateway_url();
    let config = Config::new(gateway.parse().expect("it is a URL"));
    let credentials = gateway.credentials().expect("it has TLS");
    let mut tls = (*credentials.client()).clone();
    // The connector sets them.
    tls.alpn_protocols.clear();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_only()
        .enable_http1()
        .build();
    let service = legacy::Client::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .service(service);
    Client::new(service, config.default_namespace)
}
