//! Changes the log filter while the process runs.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Extension, Router};

use crate::serve::Peer;
use setpoint_telemetry::LogFilter;

/// `GET /debug/flags/log` returns the log filter, `PUT` sets it: `curl -X PUT -d debug …`. Only loopback clients may
/// call it.
pub fn router(log: LogFilter) -> Router {
    Router::new()
        .route("/debug/flags/log", get(show).put(set))
        .with_state(log)
}

type TextResponse = (StatusCode, String);

async fn show(State(log): State<LogFilter>, peer: Option<Extension<Peer>>) -> TextResponse {
    match is_local(peer) {
        true => (StatusCode::OK, format!("{}\n", log.filter())),
        false => forbidden(),
    }
}

async fn set(
    State(log): State<LogFilter>,
    peer: Option<Extension<Peer>>,
    filter: String,
) -> TextResponse {
    if !is_local(peer) {
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

fn is_local(peer: Option<Extension<Peer>>) -> bool {
    peer.is_some_and(|Extension(Peer(address))| address.ip().to_canonical().is_loopback())
}

fn forbidden() -> TextResponse {
    (
        StatusCode::FORBIDDEN,
        "only clients on the loopback address may use this endpoint
"
        .to_owned(),
    )
}
