//! Authenticates and authorizes requests, and serves the documents that others need to verify tokens (OpenID Connect
//! discovery).

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use http::header::HOST;
use http::{HeaderMap, HeaderValue};
use serde_json::json;
use setpoint_kinds::Identity;
use setpoint_proto::ApiError;

use super::response::{self, ApiResponse, ErrorResponse};
use crate::registry::Registry;
use crate::request::authentication;
use crate::request::service_account::ISSUER;
use crate::request::{Query, RequestInfo};

const KEYS: &str = "/openid/v1/jwks";

/// Sets the user of a request as an extension, and authorizes what it asks for.
pub(super) async fn authenticate<F: Future<Output = Response>>(
    registry: &Registry,
    info: &RequestInfo,
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    match user_of(registry, info, request.headers_mut()).await {
        Ok(user) => {
            request.extensions_mut().insert(user);
            next(request).await
        }
        Err(error) => ErrorResponse(error).into_response(),
    }
}

async fn user_of(
    registry: &Registry,
    info: &RequestInfo,
    headers: &mut HeaderMap,
) -> Result<Identity, ApiError> {
    let user = authentication::identify(registry.tokens(), registry.authorizer(), headers).await?;
    registry
        .authorizer()
        .authorize(&user, &info.attributes)
        .await?;
    Ok(user)
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
    let keys = registry.tokens().keys.key_set().await?;
    let content_type = HeaderValue::from_static("application/jwk-set+json");
    Ok(ApiResponse::new(content_type, keys.to_string()))
}
