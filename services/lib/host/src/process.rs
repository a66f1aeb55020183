//! A running service's address, health checks and shutdown signal.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use setpoint_telemetry::LogFilter;
use setpoint_tls::Credentials;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::certificates::Certificates;
use crate::health::Health;
use crate::{debug, grpc, monitoring, probe_handlers};

/// A handle on the running process: its name, address, health, shutdown and router. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    service: &'static str,
    instance: Arc<str>,
    address: SocketAddr,
    advertised: Arc<str>,
    stop: CancellationToken,
    health: Health,
    log: LogFilter,
    credentials: Option<Credentials>,
    certificates: Certificates,
    app: Arc<OnceLock<App>>,
}

/// The API of a service.
struct App {
    router: Router,
    /// Whether it serves the metrics, too, and decides who may read them.
    has_metrics: bool,
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
            credentials: None,
            certificates: Certificates::default(),
            app: Arc::default(),
        }
    }

    /// Returns a handle for a service that shares its process with others, for tests: nothing is served.
    #[cfg(feature = "testing")]
    pub fn simulated(service: &'static str, instance: &str, stop: CancellationToken) -> Self {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        Self::new(
            service,
            instance.to_owned(),
            nowhere,
            stop,
            LogFilter::default(),
        )
    }

    /// Sets the name or IP at which others reach the process, unless it is empty.
    #[must_use]
    pub(crate) fn advertised_as(mut self, host: &str) -> Self {
        if !host.is_empty() {
            self.advertised = format!("{host}:{}", self.address.port()).into();
        }
        self
    }

    /// Sets the identity of the process, if it has one, and follows its files.
    #[must_use]
    pub(crate) fn identified_by(mut self, credentials: Option<&Credentials>) -> Self {
        self.credentials = credentials.cloned();
        if let Some(credentials) = credentials {
            self.follow("tls", credentials);
        }
        self
    }

    /// Follows the files of credentials, which a table of the settings names, until the process ends. They are among
    /// those of [`Self::certificates`].
    pub fn follow(&self, table: &'static str, credentials: &Credentials) {
        self.certificates.add(table, credentials.clone());
        tokio::spawn(credentials.clone().follow());
    }

    /// Returns the certificates of the process.
    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// Returns the identity of the process, for its own connections; `None` without TLS.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// Returns the name of the service, which is also that of its Lease and its spans' resource.
    pub fn service(&self) -> &'static str {
        self.service
    }

    /// Returns the name of this replica, unique within the service.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Returns the address that the process listens at, with the actual port if the setting was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns host and port at which others reach the process: the unspecified IP if it listens on all addresses and
    /// `advertise` is not set.
    pub fn advertised(&self) -> &str {
        &self.advertised
    }

    /// Returns the token that is cancelled when the process should stop.
    pub fn shutdown(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Returns the checks that decide whether the process is ready.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Serves `app` on the listener of the process, in addition to health and metrics.
    ///
    /// Must be called at most once. Streams should end on [`Host::shutdown`]; if not, they are closed after the drain.
    pub fn offer(&self, app: Router) {
        self.set(App {
            router: app,
            has_metrics: false,
        });
    }

    fn set(&self, app: App) {
        let first = self.app.set(app).is_ok();
        debug_assert!(first, "called once");
    }

    /// Serves `app` until shutdown.
    pub async fn serve(&self, app: Router) {
        self.offer(app);
        self.stop.cancelled().await;
    }

    /// Serves `app` until shutdown. It authorizes its requests, and serves [`crate::metrics`] at `/metrics` itself.
    pub async fn serve_with_metrics(&self, app: Router) {
        self.set(App {
            router: app,
            has_metrics: true,
        });
        self.stop.cancelled().await;
    }

    /// Returns the router of the listener, which falls back to the service's API once that is set.
    pub(crate) fn listener_router(&self) -> Router {
        // Shared, since the handler is cloned for every request.
        let host = Arc::new(self.clone());
        let for_metrics = Arc::clone(&host);
        probe_handlers::router(self.health.clone())
            .merge(grpc::router(self.health.clone()))
            .merge(debug::router(self.log.clone()))
            .route(
                "/metrics",
                any(move |request| async move { for_metrics.metrics(request).await }),
            )
            .fallback(move |request| async move { host.api_response(request).await })
    }

    /// Responds with the metrics: by the API once it serves them.
    async fn metrics(&self, request: Request) -> Response {
        let own = Router::new()
            .route("/metrics", get(probe_handlers::metrics))
            .layer(from_fn(monitoring::authorize));
        let router = match self.app.get() {
            Some(app) if app.has_metrics => app.router.clone(),
            _ => own,
        };
        respond(router, request).await
    }

    async fn api_response(&self, request: Request) -> Response {
        match self.app.get() {
            Some(app) => respond(app.router.clone(), request).await,
            None if self.health.is_ready() => StatusCode::NOT_FOUND.into_response(),
            None => (StatusCode::SERVICE_UNAVAILABLE, "starting\n").into_response(),
        }
    }
}

async fn respond(router: Router, request: Request) -> Response {
    let response = router.oneshot(request).await;
    response.unwrap_or_else(|never| match never {})
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    async fn status(host: &Host, path: &str) -> u16 {
        let request = Request::get(path).body(Body::empty()).unwrap();
        host.listener_router()
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
    async fn an_api_that_is_not_set_yet_is_503_while_starting_and_404_when_ready() {
        let host = host();
        assert_eq!(status(&host, "/apis").await, 503);
        host.health().check("etcd").pass();
        assert_eq!(status(&host, "/apis").await, 404, "ready without an API");
    }

    /// Checks V20: requests that nobody has authorized.
    #[tokio::test]
    async fn metrics_are_served_by_an_api_that_authorizes_its_requests_or_to_those_who_monitor() {
        let (service, gateway) = (host(), host());
        let refusing = Router::new().route("/metrics", get(|| async { StatusCode::UNAUTHORIZED }));
        gateway.shutdown().cancel();
        assert_eq!(status(&gateway, "/metrics").await, 403, "while it starts");
        gateway.serve_with_metrics(refusing.clone()).await;
        assert_eq!(status(&gateway, "/metrics").await, 401);
        service.offer(refusing);
        assert_eq!(status(&service, "/metrics").await, 403);
    }

    #[tokio::test]
    async fn the_api_and_health_share_the_listener() {
        let host = host();
        host.shutdown().cancel();
        host.serve(Router::new().route("/apis", get(|| async { "yes" })))
            .await;
        assert_eq!(status(&host, "/apis").await, 200);
        assert_eq!(status(&host, "/livez").await, 200);
    }
}
