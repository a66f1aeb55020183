//! Lets gateways alone call the service: a call has the secret that they share with the agents.

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use setpoint_host::secret::{are_equal, read_or_create};
use setpoint_host::serve::Peer;
use tonic::Status;

/// The scheme of the header `authorization`.
const SCHEME: &[u8] = b"Bearer ";

/// The secret that callers must have; without one, only processes of this machine are served.
#[derive(Clone)]
pub struct Guard(Option<Arc<str>>);

impl Guard {
    /// Returns a guard with the secret in a file, which is made if there is none; without a path, one without a secret.
    ///
    /// # Errors
    /// If the file can neither be read nor made.
    pub fn of(path: &Path) -> std::io::Result<Self> {
        match path.as_os_str().is_empty() {
            true => Ok(Self(None)),
            false => Ok(Self(Some(read_or_create(path)?.into()))),
        }
    }

    /// Adds the check to all routes of a router of gRPC.
    pub fn protect(self, router: Router) -> Router {
        self.refuse_by(router, |refused| {
            refused.into_http::<axum::body::Body>().into_response()
        })
    }

    /// Adds the check to all routes of a router of HTTP.
    pub fn protect_pages(self, router: Router) -> Router {
        self.refuse_by(router, |refused| {
            (StatusCode::UNAUTHORIZED, refused.message().to_owned()).into_response()
        })
    }

    fn refuse_by(self, router: Router, response: fn(Status) -> Response) -> Router {
        router.layer(from_fn(move |request: Request, next: Next| {
            let refused = self.check(&request).err();
            async move {
                match refused {
                    Some(refused) => response(refused),
                    None => next.run(request).await,
                }
            }
        }))
    }

    fn check(&self, request: &Request) -> Result<(), Status> {
        let Some(secret) = &self.0 else {
            let peer = request.extensions().get::<Peer>();
            return match peer.is_some_and(|Peer(peer)| peer.ip().is_loopback()) {
                true => Ok(()),
                false => Err(Status::unauthenticated(
                    "the node agent has no secret (setting agent_secret_file) and serves only processes of its machine",
                )),
            };
        };
        let header = request.headers().get("authorization");
        let given = header.and_then(|header| header.as_bytes().strip_prefix(SCHEME));
        match given.is_some_and(|given| are_equal(given, secret.as_bytes())) {
            true => Ok(()),
            false => Err(Status::unauthenticated(
                "the node agent serves gateways only: the call does not have their secret (setting agent_secret_file)",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::{get, post};
    use tower::ServiceExt as _;

    use super::*;

    async fn code(guard: &Guard, header: Option<&str>, peer: &str) -> Option<String> {
        let router = Router::new().route("/setpoint.v1.Node/Usage", post(|| async {}));
        let router = guard.clone().protect(router);
        let mut request = Request::post("/setpoint.v1.Node/Usage");
        if let Some(header) = header {
            request = request.header("authorization", header);
        }
        let mut request = request.body(Body::empty()).unwrap();
        let peer = Peer(peer.parse().unwrap());
        request.extensions_mut().insert(peer);
        let response = router.oneshot(request).await.unwrap();
        let code = response.headers().get("grpc-status")?;
        Some(code.to_str().unwrap().to_owned())
    }

    /// Checks F21.
    #[tokio::test]
    async fn a_call_without_the_secret_is_unauthenticated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let guard = Guard::of(&path).unwrap();
        let secret = std::fs::read_to_string(&path).unwrap();
        let near = "127.0.0.1:1";
        let right = format!("Bearer {secret}");
        assert_eq!(code(&guard, Some(&right), near).await, None);
        let cut = &right[..right.len() - 1];
        for wrong in [
            None,
            Some("Bearer "),
            Some(&secret),
            Some(cut),
            Some("Bearer guess"),
        ] {
            let code = code(&guard, wrong, near).await;
            assert_eq!(code.as_deref(), Some("16"), "{wrong:?}");
        }
    }

    /// Checks F21.
    #[tokio::test]
    async fn a_request_for_a_page_without_the_secret_is_unauthorized() {
        let guard = Guard(Some("secret".into()));
        let router = Router::new().route("/stats/summary", get(|| async { "page" }));
        let router = guard.protect_pages(router);
        for (header, expected) in [("Bearer secret", 200), ("Bearer guess", 401)] {
            let request = Request::get("/stats/summary").header("authorization", header);
            let request = request.body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status(), expected);
        }
    }

    /// Checks F21.
    #[tokio::test]
    async fn without_a_secret_only_processes_of_the_machine_are_served() {
        let guard = Guard::of(Path::new("")).unwrap();
        assert_eq!(code(&guard, None, "127.0.0.1:1").await, None);
        let far = code(&guard, Some("Bearer x"), "10.1.2.3:1").await;
        assert_eq!(far.as_deref(), Some("16"));
    }
}
