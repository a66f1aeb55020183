//! The process as its service sees it.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use setpoint_telemetry::LogFilter;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::health::Health;
use crate::{debug, grpc, probes};

/// The running process, as its service uses it. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    service: &'static str,
    instance: Arc<str>,
    address: SocketAddr,
    advertised: Arc<str>,
    stop: CancellationToken,
    health: Health,
    log: LogFilter,
    app: Arc<OnceLock<Router>>,
}

impl Host {
    pub(crate) fn new(
        service: &'static str,
        instance: String,
        address: SocketAddr,
        stop: CancellationToken,
        log: LogFilter,
    ) -> Self {
        Self {
            service,
            instance: instance.into(),
            address,
            advertised: address.to_string().into(),
            stop,
            health: Health::default(),
            log,
            app: Arc::default(),
        }
    }

    /// The same, reached by others under this name or IP unless it is empty.
    #[must_use]
    pub(crate) fn advertised_as(mut self, host: &str) -> Self {
        if !host.is_empty() {
            self.advertised = format!("{host}:{}", self.address.port()).into();
        }
        self
    }

    /// The service's name, as its folder, its Lease and its traces have it.
    pub fn service(&self) -> &'static str {
        self.service
    }

    /// Which replica this is, told apart from all others of its service.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Where the process listens; the port is real even if the setting was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Host and port for others to reach it. The unspecified IP if it listens on all and was not told its own.
    pub fn advertised(&self) -> &str {
        &self.advertised
    }

    /// Cancelled when the process should stop.
    pub fn shutdown(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Returns the checks that decide whether the process is ready.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Answers on the process's own listener with `app`, beside health and metrics.
    ///
    /// Only the first call counts. What streams should end on [`Host::shutdown`] by itself, or the drain has to cut it.
    pub fn offer(&self, app: Router) {
        let first = self.app.set(app).is_ok();
        debug_assert!(first, "a process has one API");
    }

    /// The same for a process that does nothing else until shutdown.
    pub async fn serve(&self, app: Router) {
        self.offer(app);
        self.stop.cancelled().await;
    }

    /// Health, metrics, grpc.health and the log level, as one router.
    pub fn router(&self) -> Router {
        probes::router(self.health.clone())
            .merge(grpc::router(self.health.clone()))
            .merge(debug::router(self.log.clone()))
    }

    /// Returns the listener's router: health at once, and the service's API as soon as there is one.
    pub(crate) fn front(&self) -> Router {
        let host = self.clone();
        self.router()
            .fallback(move |request| async move { host.rest(request).await })
    }

    async fn rest(self, request: Request) -> Response {
        match self.app.get() {
            Some(app) => app
                .clone()
                .oneshot(request)
                .await
                .unwrap_or_else(|never| match never {}),
            None if self.health.is_ready() => StatusCode::NOT_FOUND.into_response(),
            None => (StatusCode::SERVICE_UNAVAILABLE, "starting\n").into_response(),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;

    use super::*;

    async fn status(host: &Host, path: &str) -> u16 {
        let request = Request::get(path).body(Body::empty()).unwrap();
        host.front()
            .oneshot(request)
            .await
            .unwrap()
            .status()
            .as_u16()
    }

    fn host() -> Host {
        let address = "127.0.0.1:1".parse().unwrap();
        Host::new(
            "demo",
            "demo-0".to_owned(),
            address,
            CancellationToken::new(),
            LogFilter::default(),
        )
    }

    #[tokio::test]
    async fn an_api_that_is_still_starting_is_unavailable_and_not_absent() {
        let host = host();
        assert_eq!(status(&host, "/apis").await, 503);
        host.health().check("etcd").pass();
        assert_eq!(
            status(&host, "/apis").await,
            404,
            "nothing was ever served here"
        );
    }

    #[tokio::test]
    async fn an_api_shares_the_listener_with_health() {
        let host = host();
        host.shutdown().cancel();
        host.serve(Router::new().route("/apis", get(|| async { "yes" })))
            .await;
        assert_eq!(status(&host, "/apis").await, 200);
        assert_eq!(status(&host, "/livez").await, 200);
    }
}
