//! The endpoints `/livez`, `/readyz` and `/healthz`, and the metrics, in the format of Kubernetes.

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus::{Encoder, TextEncoder};

use crate::health::{Health, Report};

/// Returns the router of liveness and readiness, which everybody may ask for.
pub fn router(health: Health) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/livez/{*check}", get(livez_check))
        .route("/healthz", get(healthz))
        .route("/healthz/{*check}", get(healthz_check))
        .route("/readyz", get(readyz))
        .route("/readyz/{*check}", get(readyz_check))
        .with_state(health)
}

/// Always succeeds: a process that answers is alive, and must not be restarted only because it is not ready. Checks
/// that fail are listed as excluded.
async fn livez(State(health): State<Health>, RawQuery(query): RawQuery) -> Response {
    let query = Query::parse(query.as_deref());
    let report = report(&health).without(&query.excluded);
    answer("livez", report.without_failures(), query.verbose)
}

async fn livez_check(State(health): State<Health>, Path(check): Path<String>) -> Response {
    one("livez", &check, report(&health))
}

async fn readyz(State(health): State<Health>, RawQuery(query): RawQuery) -> Response {
    let query = Query::parse(query.as_deref());
    let report = report(&health).without(&query.excluded);
    answer("readyz", report, query.verbose)
}

async fn readyz_check(State(health): State<Health>, Path(check): Path<String>) -> Response {
    one("readyz", &check, report(&health))
}

/// Deprecated in Kubernetes; the same as readiness, as there.
async fn healthz(State(health): State<Health>, RawQuery(query): RawQuery) -> Response {
    let query = Query::parse(query.as_deref());
    let report = report(&health).without(&query.excluded);
    answer("healthz", report, query.verbose)
}

async fn healthz_check(State(health): State<Health>, Path(check): Path<String>) -> Response {
    one("healthz", &check, report(&health))
}

fn report(health: &Health) -> Report {
    Report::alive().and(health.report())
}

/// Responds with one check of a report.
fn one(name: &str, check: &str, report: Report) -> Response {
    match report.only(check) {
        Some(report) => answer(name, report, false),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn answer(name: &str, report: Report, verbose: bool) -> Response {
    match (report.is_ok(), verbose) {
        (true, false) => "ok".into_response(),
        (true, true) => format!("{report}{name} check passed\n").into_response(),
        (false, _) => (
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{report}{name} check failed\n"),
        )
            .into_response(),
    }
}

/// The query parameters: `verbose`, and any number of `exclude=<check>`.
#[derive(Default)]
struct Query {
    verbose: bool,
    excluded: Vec<String>,
}

impl Query {
    fn parse(text: Option<&str>) -> Self {
        let mut query = Self::default();
        for pair in text.unwrap_or_default().split('&') {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("verbose", value) => query.verbose = !matches!(value, "0" | "false"),
                ("exclude", name) => query.excluded.push(name.to_owned()),
                _ => {}
            }
        }
        query
    }
}

/// Responds with the metrics of the process. Who may read them has been decided before.
pub async fn metrics() -> Response {
    let encoder = TextEncoder::new();
    let mut text = Vec::new();
    match encoder.encode(&prometheus::gather(), &mut text) {
        Ok(()) => (
            [(header::CONTENT_TYPE, encoder.format_type().to_owned())],
            text,
        )
            .into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::{self, Body};
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;

    async fn fetch(health: &Health, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router(health.clone()).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let text = body::to_bytes(response.into_body(), usize::MAX)
            .await
            .unwrap();
        (status, String::from_utf8(text.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn livez_succeeds_before_readyz_does() {
        let health = Health::default();
        health.check("informers").fail("pods are not listed yet");
        assert_eq!(fetch(&health, "/livez").await, (200, "ok".to_owned()));
        let (status, text) = fetch(&health, "/readyz").await;
        assert_eq!(status, 500);
        assert_eq!(
            text,
            "[+]ping ok\n[+]log ok\n[-]informers failed: pods are not listed yet\nreadyz check failed\n"
        );
        assert_eq!(fetch(&health, "/readyz?exclude=informers").await.0, 200);
    }

    /// Checks K22.
    #[tokio::test]
    async fn verbose_responses_list_every_check() {
        let health = Health::default();
        health.check("etcd").pass();
        assert_eq!(fetch(&health, "/readyz").await, (200, "ok".to_owned()));
        for name in ["readyz", "healthz"] {
            let verbose = format!("[+]ping ok\n[+]log ok\n[+]etcd ok\n{name} check passed\n");
            let path = format!("/{name}?verbose=1");
            assert_eq!(fetch(&health, &path).await, (200, verbose));
        }
        let verbose = "[+]ping ok\n[+]log ok\n[+]etcd ok\nlivez check passed\n".to_owned();
        assert_eq!(fetch(&health, "/livez?verbose").await, (200, verbose));
        health.check("etcd").fail("no answer");
        let verbose = "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n";
        for (path, name) in [
            ("/livez?verbose", "livez"),
            ("/readyz?exclude=etcd&verbose", "readyz"),
        ] {
            let verbose = format!("{verbose}{name} check passed\n");
            assert_eq!(fetch(&health, path).await, (200, verbose));
        }
    }

    /// Checks K22.
    #[tokio::test]
    async fn a_single_check_has_its_own_path() {
        let health = Health::default();
        health.check("poststarthook/informers").pass();
        health.check("etcd").fail("no answer");
        assert_eq!(
            fetch(&health, "/readyz/poststarthook/informers").await.0,
            200
        );
        assert_eq!(fetch(&health, "/readyz/etcd").await.0, 500);
        assert_eq!(fetch(&health, "/livez/ping").await.0, 200);
        assert_eq!(fetch(&health, "/livez/etcd").await.0, 500);
        assert_eq!(fetch(&health, "/livez/none").await.0, 404);
    }

    #[tokio::test]
    async fn metrics_include_memory_and_cpu_time_of_the_process() {
        let response = metrics().await;
        assert_eq!(response.status(), 200);
        let text = body::to_bytes(response.into_body(), usize::MAX)
            .await
            .unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("process_resident_memory_bytes"), "{text}");
        assert!(text.contains("process_cpu_seconds_total"), "{text}");
    }
}
