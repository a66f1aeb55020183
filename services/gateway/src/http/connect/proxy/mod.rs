//! `proxy`: requests of HTTP to a Pod, to a Pod behind a Service, or to the agent of a node.

mod backend;
mod exchange;
mod links;
mod location;
mod name;

use axum::body::Body;
use axum::response::Response;
use http::header::LOCATION;
use http::{HeaderValue, Method, StatusCode, Uri};
use setpoint_codec::kind_of;
use setpoint_proto::core::Node;
use setpoint_proto::{ApiError, Reason};

use super::{ConnectRequest, options};
use crate::agents;
use name::Name;

/// Passes a request on.
///
/// # Errors
/// If the request is invalid or denied, or what it names cannot be reached.
pub(super) async fn proxy(request: ConnectRequest, body: Body) -> Result<Response, ApiError> {
    let uri = request.parts.uri.clone();
    let kind = request.route.kind;
    let path = path_of(&uri, request.route.kind.namespaced);
    let object = options::of_proxy(kind, path.unwrap_or_default());
    let (context, _) = options::admit(&request, object).await?;
    let name = Name::parse(&request.route.name).ok_or_else(|| {
        let kind = kind.kind.to_lowercase();
        let message = format!("invalid {kind} request {:?}", request.route.name);
        ApiError::new(Reason::BadRequest, message)
    })?;
    if *request.route.kind == *kind_of::<Node>() && !path.is_none_or(agents::is_page) {
        return Err(ApiError::new(Reason::NotFound, "404 page not found"));
    }
    let backend = backend::find(&request, &context, &name).await?;
    let Some(path) = path else {
        return match [Method::GET, Method::HEAD].contains(&request.parts.method) {
            true => Ok(to_root(&uri)),
            false => exchange::exchange(request, body, backend, "/").await,
        };
    };
    exchange::exchange(request, body, backend, path).await
}

/// Returns the path after `proxy`, with its first slash; `None` if there is not even a slash.
fn path_of(uri: &Uri, is_namespaced: bool) -> Option<&str> {
    // `/api/v1/namespaces/{namespace}/pods/{name}/proxy` or `/api/v1/nodes/{name}/proxy`.
    let slashes = if is_namespaced { 8 } else { 6 };
    let path = uri.path();
    let at = path.match_indices('/').nth(slashes - 1)?.0;
    path.get(at..)
}

/// Redirects a client to the root of what it names, so that relative links work.
fn to_root(uri: &Uri) -> Response {
    let query = uri.query().map(|query| format!("?{query}"));
    let to = format!("{}/{}", uri.path(), query.unwrap_or_default());
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(to) = HeaderValue::try_from(to) {
        response.headers_mut().insert(LOCATION, to);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_what_follows() {
        let pod = "/api/v1/namespaces/a/pods/b/proxy";
        let path = |path: &str, is_namespaced| {
            let uri: Uri = path.parse().unwrap();
            path_of(&uri, is_namespaced).map(str::to_owned)
        };
        assert_eq!(path(pod, true), None);
        assert_eq!(path(&format!("{pod}/"), true).as_deref(), Some("/"));
        assert_eq!(
            path(&format!("{pod}/x%2Fy//z/?a=b"), true).as_deref(),
            Some("/x%2Fy//z/")
        );
        assert_eq!(
            path("/api/v1/nodes/n/proxy/metrics", false).as_deref(),
            Some("/metrics")
        );
        let root = to_root(&"/api/v1/nodes/n/proxy?a=b".parse().unwrap());
        assert_eq!(root.headers()[LOCATION], "/api/v1/nodes/n/proxy/?a=b");
    }
}
