//! Authorization of the pages for monitoring, such as `/metrics`.
//!
//! Upstream's components ask the API about each request (SubjectAccessReview). Here the certificate decides, so that a
//! process can be watched while no gateway answers, and no service needs the right to ask: those in the group
//! `system:monitoring`, for which upstream has the role of that name, administrators, and gateways, which have
//! authorized the request that they pass on. A gateway decides about its own pages by its modes of authorization.

use axum::Extension;
use axum::extract::Request;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::Response;
use setpoint_proto::{ApiError, Reason};
use setpoint_tls::PeerIdentity;

use crate::protocol::Protocol;
use crate::serve::ConnectionInfo;

/// The group of those who may read metrics.
const MONITORING: &str = "system:monitoring";
/// The user that a request without credentials is one of.
const ANONYMOUS: &str = "system:anonymous";

/// Passes a request on if its client may read pages for monitoring. Without TLS, all may.
pub(crate) async fn authorize(
    connection: Option<Extension<ConnectionInfo>>,
    request: Request,
    next: Next,
) -> Response {
    match check(connection.map(|Extension(connection)| connection), &request) {
        Ok(()) => next.run(request).await,
        Err(error) => Protocol::Http.error_response(error),
    }
}

fn check(connection: Option<ConnectionInfo>, request: &Request) -> Result<(), ApiError> {
    let Some(connection) = connection else {
        return Err(forbidden(ANONYMOUS, request));
    };
    if connection.is_of_administrator() || connection.is_of_gateway() {
        return Ok(());
    }
    match connection.identity() {
        Ok(Some(client)) if is_monitor(client) => Ok(()),
        Ok(Some(client)) => Err(forbidden(&client.name, request)),
        // Tokens are known to gateways only.
        Ok(None) if !request.headers().contains_key(AUTHORIZATION) => {
            Err(forbidden(ANONYMOUS, request))
        }
        Ok(None) | Err(_) => Err(ApiError::new(Reason::Unauthorized, "Unauthorized")),
    }
}

fn is_monitor(client: &PeerIdentity) -> bool {
    client.groups.iter().any(|group| group == MONITORING)
}

/// Returns upstream's error.
fn forbidden(user: &str, request: &Request) -> ApiError {
    let verb = request.method().as_str().to_lowercase();
    let path = request.uri().path();
    let message = format!("forbidden: User {user:?} cannot {verb} path {path:?}");
    ApiError::new(Reason::Forbidden, message)
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::middleware::from_fn;
    use axum::routing::get;
    use jiff::Timestamp;
    use tower::ServiceExt as _;

    use super::*;

    type Client = Result<Option<PeerIdentity>, String>;

    fn client(name: &str, group: &str) -> Client {
        Ok(Some(PeerIdentity {
            name: name.to_owned(),
            groups: vec![group.to_owned()],
            uid: String::new(),
            fingerprint: String::new(),
            not_after: Timestamp::MAX,
        }))
    }

    async fn ask(connection: Option<ConnectionInfo>, token: Option<&str>) -> (u16, String) {
        let pages = Router::new().route("/metrics", get(async || "page"));
        let pages = pages.layer(from_fn(authorize));
        let mut request = Request::get("/metrics");
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        let mut request = request.body(Body::empty()).unwrap();
        if let Some(connection) = connection {
            request.extensions_mut().insert(connection);
        }
        let response = pages.oneshot(request).await.unwrap();
        let code = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 10).await.unwrap();
        (code, String::from_utf8_lossy(&body).into_owned())
    }

    fn over_tls(client: Client) -> Option<ConnectionInfo> {
        Some(ConnectionInfo::over_tls(([127, 0, 0, 1], 1).into(), client))
    }

    #[tokio::test]
    async fn those_who_monitor_administrators_and_gateways_read_metrics() {
        let plain = ConnectionInfo::new(([127, 0, 0, 1], 1).into());
        for allowed in [
            Some(plain),
            over_tls(client("system:setpoint:prometheus", "system:monitoring")),
            over_tls(client("system:admin", "system:masters")),
            over_tls(client("system:setpoint:gateway", "system:setpoint")),
        ] {
            assert_eq!(ask(allowed, None).await, (200, "page".to_owned()));
        }
    }

    /// Checks V20.
    #[tokio::test]
    async fn others_are_refused_as_upstream_refuses_them() {
        for (client, user) in [
            (Ok(None), "system:anonymous"),
            (client("alice", "dev"), "alice"),
            (
                client("system:setpoint:scheduler", "system:setpoint"),
                "system:setpoint:scheduler",
            ),
            (client("system:node:a", "system:nodes"), "system:node:a"),
        ] {
            let (code, body) = ask(over_tls(client), None).await;
            assert_eq!(code, 403);
            let message = format!(r#"forbidden: User \"{user}\" cannot get path \"/metrics\""#);
            assert!(body.contains(&message), "{body}");
        }
        for (client, token) in [
            (Err("expired".to_owned()), None),
            (Ok(None), Some("Bearer x")),
        ] {
            let (code, body) = ask(over_tls(client), token).await;
            assert_eq!(code, 401);
            assert!(body.contains(r#""message":"Unauthorized""#), "{body}");
        }
        assert_eq!(ask(None, None).await.0, 403);
    }
}
