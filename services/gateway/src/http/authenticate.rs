//! Authenticates and authorizes requests, with flow control between both; and serves the documents that others need to
//! verify tokens (OpenID Connect discovery).

use std::slice;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{HeaderMap, HeaderValue, Uri};
use serde_json::json;
use setpoint_host::serve::ConnectionInfo;
use setpoint_kinds::Identity;
use setpoint_proto::{ApiError, Reason};

use super::host::host;
use super::response::{self, ApiResponse, ErrorFormat, ErrorResponse};
use crate::registry::Registry;
use crate::request::audit;
use crate::request::authentication::Authenticated;
use crate::request::impersonation::Actor;
use crate::request::service_account::ISSUER;
use crate::request::{Query, RequestInfo};
use crate::warnings;

const KEYS: &str = "/openid/v1/jwks";

/// Sets the user of a request, who may act as another, as an extension. Warns about its credentials in the response.
pub(super) async fn authenticate<F: Future<Output = Response>>(
    registry: &Registry,
    info: &RequestInfo,
    mut request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let errors = ErrorFormat::of(&info.query, request.headers());
    match user_of(registry, info, &mut request).await {
        Ok((user, warning)) => {
            request.extensions_mut().insert(user);
            let mut response = next(request).await;
            if let Some(warning) = warning.and_then(warnings::header) {
                warnings::put_first(response.headers_mut(), warning);
            }
            response
        }
        Err(error) => refused(error, errors),
    }
}

async fn user_of(
    registry: &Registry,
    info: &RequestInfo,
    request: &mut Request,
) -> Result<(Identity, Option<&'static str>), ApiError> {
    let connection = request.extensions().get::<ConnectionInfo>().cloned();
    let (headers, authorizer) = (request.headers_mut(), registry.authorizer());
    let asked = &*info.attributes;
    let user = registry
        .authenticator()
        .authenticate(connection.as_ref(), headers, &asked.path);
    let user = user.await;
    let known = user.inspect_err(|error| audit::refuse(error, || asked.clone()))?;
    let Authenticated { user, warning } = known;
    audit::begin(&user, slice::from_ref(asked));
    let actor = Actor::of(user, headers)?;
    let user = registry.impersonation();
    let user = user
        .resolve(authorizer, actor, slice::from_ref(asked))
        .await?;
    Ok((user, warning))
}

/// Authorizes what a request asks for.
pub(super) async fn authorize<F: Future<Output = Response>>(
    registry: &Registry,
    info: &RequestInfo,
    request: Request,
    next: impl FnOnce(Request) -> F,
) -> Response {
    let nobody = Identity::default();
    let user = request.extensions().get().unwrap_or(&nobody);
    let allowed = registry.authorizer().authorize(user, &info.attributes);
    match allowed.await {
        Ok(()) => next(request).await,
        Err(error) => refused(error, ErrorFormat::of(&info.query, request.headers())),
    }
}

/// Returns the response to a request that is not served. As upstream, one whose user is known tells browsers not to
/// guess what it is, since its text has names from the request.
fn refused(error: ApiError, format: ErrorFormat) -> Response {
    let is_known = error.reason != Reason::Unauthorized;
    let mut response = ErrorResponse(error).in_format(format);
    if is_known {
        let nosniff = HeaderValue::from_static("nosniff");
        response
            .headers_mut()
            .insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    }
    response
}

/// Returns the routes of the documents about tokens.
pub(super) fn router() -> Router<Arc<Registry>> {
    Router::new()
        .route("/.well-known/openid-configuration", get(configuration))
        .route(KEYS, get(keys))
}

async fn configuration(
    connection: Option<Extension<ConnectionInfo>>,
    query: Query,
    uri: Uri,
    headers: HeaderMap,
) -> ApiResponse {
    let is_tls = connection.is_some_and(|Extension(connection)| connection.is_tls());
    let scheme = if is_tls { "https" } else { "http" };
    let host = host(&uri, &headers).unwrap_or("localhost");
    let document = json!({
        "issuer": ISSUER,
        "jwks_uri": format!("{scheme}://{host}{KEYS}"),
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
