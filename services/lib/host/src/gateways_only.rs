//! Routes of a process that gateways alone may call.
//!
//! A gateway is known by its certificate. Without TLS every client may be one ([`ConnectionInfo::is_of_gateway`]).

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use tonic::Status;

use crate::serve::ConnectionInfo;

const REFUSED: &str =
    "the node agent serves gateways only: the client has no certificate of a gateway";

/// Adds the check to all routes of a router of gRPC.
pub fn calls(router: Router) -> Router {
    refuse_by(router, || {
        let status = Status::unauthenticated(REFUSED);
        status.into_http::<Body>().into_response()
    })
}

/// Adds the check to all routes of a router of HTTP.
pub fn pages(router: Router) -> Router {
    refuse_by(router, || {
        (StatusCode::UNAUTHORIZED, REFUSED).into_response()
    })
}

fn refuse_by(router: Router, response: fn() -> Response) -> Router {
    router.layer(from_fn(move |request: Request, next: Next| async move {
        let connection = request.extensions().get::<ConnectionInfo>();
        match connection.is_some_and(ConnectionInfo::is_of_gateway) {
            true => next.run(request).await,
            false => response(),
        }
    }))
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use jiff::Timestamp;
    use setpoint_tls::PeerIdentity;
    use tower::ServiceExt as _;

    use super::*;

    async fn send(path: &str, connection: Option<ConnectionInfo>) -> Response {
        let route = |path| Router::new().route(path, get(|| async {}));
        let router = calls(route("/call")).merge(pages(route("/page")));
        let mut request = Request::get(path).body(Body::empty()).unwrap();
        if let Some(connection) = connection {
            request.extensions_mut().insert(connection);
        }
        router.oneshot(request).await.unwrap()
    }

    fn over_tls(client: Option<&str>) -> ConnectionInfo {
        let client = client.map(|name| PeerIdentity {
            name: name.to_owned(),
            groups: Vec::new(),
            uid: String::new(),
            fingerprint: String::new(),
            not_after: Timestamp::MAX,
        });
        ConnectionInfo::over_tls(([127, 0, 0, 1], 1).into(), Ok(client))
    }

    /// Checks F21, DG6, V1 and V20.
    #[tokio::test]
    async fn over_tls_only_the_certificate_of_a_gateway_is_served() {
        let gateway = over_tls(Some("system:setpoint:gateway"));
        let plain = ConnectionInfo::new(([127, 0, 0, 1], 1).into());
        for allowed in [gateway, plain] {
            for path in ["/call", "/page"] {
                let response = send(path, Some(allowed.clone())).await;
                assert_eq!(response.status(), StatusCode::OK);
                assert_eq!(response.headers().get("grpc-status"), None);
            }
        }
        let others = [
            None,
            Some("system:node:m"),
            Some("system:setpoint:scheduler"),
            Some("system:admin"),
        ];
        let others = others.map(|client| Some(over_tls(client)));
        for refused in others.into_iter().chain([None]) {
            let call = send("/call", refused.clone()).await;
            assert_eq!(call.headers()["grpc-status"], "16");
            let page = send("/page", refused).await;
            assert_eq!(page.status(), StatusCode::UNAUTHORIZED);
        }
    }
}
