//! Authenticates requests, and serves the documents by which others verify tokens (OpenID Connect discovery).

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::HOST;
use http::{HeaderMap, HeaderValue};
use serde_json::json;

use super::query::Query;
use super::response::{self, ApiResponse, ErrorResponse};
use crate::access::authentication;
use crate::access::service_account::ISSUER;
use crate::registry::Registry;

const KEYS: &str = "/openid/v1/jwks";

/// Sets the user of a request as an extension.
pub(super) async fn authenticate<F: Future<Output = Response>>(
    registry: &Registry,
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    match authentication::identify(registry, &mut request).await {
        Ok(()) => next(request).await,
        Err(error) => ErrorResponse(error).into_response(),
    }
}

/// Returns the routes of the documents about tokens.
pub(super) fn router() -> Router<Arc<Registry>> {
    Router::new()
        .route("/.well-known/openid-configuration", get(configuration))
        .route(KEYS, get(keys))
}

async fn configuration(query: Query, headers: HeaderMap) -> ApiResponse {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let document = json!({
        "issuer": ISSUER,
        "jwks_uri": format!("http://{}{KEYS}", host.unwrap_or("localhost")),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    });
    response::document(&document, response::is_pretty(&query, &headers))
}

async fn keys(State(registry): State<Arc<Registry>>) -> Result<ApiResponse, ErrorResponse> {
    let keys = registry.key_set().await?;
    let content_type = HeaderValue::from_static("application/jwk-set+json");
    Ok(ApiResponse::new(content_type, keys.to_string()))
}
