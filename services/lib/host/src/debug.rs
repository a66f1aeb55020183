//! Changes the log filter while the process runs.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Extension, Router};

use crate::serve::{ConnectionInfo, Peer};
use setpoint_telemetry::LogFilter;

/// `GET /debug/flags/log` returns the log filter, `PUT` sets it: `curl -X PUT -d debug …`. Only loopback clients may
/// call it and, over TLS, only those with the certificate of an administrator: a filter can bring tokens into the log.
pub fn router(log: LogFilter) -> Router {
    Router::new()
        .route("/debug/flags/log", get(show).put(set))
        .with_state(log)
}

type TextResponse = (StatusCode, String);

async fn show(
    State(log): State<LogFilter>,
    peer: Option<Extension<Peer>>,
    connection: Option<Extension<ConnectionInfo>>,
) -> TextResponse {
    match may_call(peer, connection) {
        true => (StatusCode::OK, format!("{}\n", log.filter())),
        false => forbidden(),
    }
}

async fn set(
    State(log): State<LogFilter>,
    peer: Option<Extension<Peer>>,
    connection: Option<Extension<ConnectionInfo>>,
    filter: String,
) -> TextResponse {
    if !may_call(peer, connection) {
        return forbidden();
    }
    match log.set(filter.trim()) {
        Ok(()) => (
            StatusCode::OK,
            format!("successfully set log to {}\n", filter.trim()),
        ),
        Err(error) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}

fn may_call(peer: Option<Extension<Peer>>, connection: Option<Extension<ConnectionInfo>>) -> bool {
    let is_local =
        |Extension(Peer(address)): Extension<Peer>| address.ip().to_canonical().is_loopback();
    peer.is_some_and(is_local)
        && connection.is_some_and(|Extension(connection)| connection.is_of_administrator())
}

fn forbidden() -> TextResponse {
    (
        StatusCode::FORBIDDEN,
        "only administrators on the loopback address may use this endpoint
"
        .to_owned(),
    )
}
