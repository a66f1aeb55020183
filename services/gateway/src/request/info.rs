//! The route, verb, query and deadline of an HTTP request, parsed once from its head (upstream: `RequestInfo`).

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Uri};
use percent_encoding::percent_decode_str;
use setpoint_codec::KindTable;
use setpoint_codec::rest::is_connect;
use setpoint_model::Verb;
use setpoint_proto::ApiError;

use super::{Attributes, Query, Route, timeout};

/// The parsed head of a request. A clone is cheap.
#[derive(Clone, Debug)]
pub(crate) struct RequestInfo {
    /// The object or collection of a served kind that the path names.
    pub(crate) route: Option<Arc<Route>>,
    /// The verb on that; `None` if the method is not allowed, and for connections.
    pub(crate) verb: Option<Verb>,
    pub(crate) query: Query,
    pub(crate) attributes: Arc<Attributes>,
}

impl RequestInfo {
    /// Reads the method, the path and the query of a request.
    pub(crate) fn of(kinds: &KindTable, method: &Method, uri: &Uri) -> Self {
        let query = Query::parse(uri.query().unwrap_or_default());
        let path = uri.path();
        let segments = segments(path);
        let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
        // Names are UTF-8.
        let is_text = percent_decode_str(path).decode_utf8().is_ok();
        let route = is_text.then(|| Route::of(kinds, &segments)).flatten();
        let verb = route.as_ref().and_then(|route| verb(method, route, &query));
        let attributes = Attributes::of_http(method, path, &segments, &query);
        Self {
            route: route.map(Arc::new),
            verb,
            query,
            attributes: Arc::new(attributes),
        }
    }

    /// Returns the timeout that the client sets.
    ///
    /// # Errors
    /// `BadRequest` if it is malformed.
    pub(crate) fn timeout(&self) -> Result<Option<Duration>, ApiError> {
        timeout::timeout(&self.query)
    }

    /// Returns whether nothing is to be written.
    pub(crate) fn is_dry_run(&self) -> bool {
        self.query.get("dryRun").is_some()
    }
}

/// Returns the segments of a path, each decoded by itself.
fn segments(path: &str) -> Vec<Cow<'_, str>> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let segments = path.trim_end_matches('/').split('/');
    let decoded = segments.map(|segment| percent_decode_str(segment).decode_utf8_lossy());
    decoded.collect()
}

/// Returns the verb of a request for an object or a collection.
fn verb(method: &Method, route: &Route, query: &Query) -> Option<Verb> {
    let everywhere = route.kind.namespaced && route.namespace.is_empty();
    let (named, part) = (!route.name.is_empty(), route.subresource.as_str());
    let watches = || query.flag("watch");
    if route.kind.is_review {
        let creates = method == Method::POST && !everywhere && !named && !route.is_watch;
        return creates.then_some(Verb::Create);
    }
    if route.kind.is_computed {
        let reads = method == Method::GET && !route.is_watch && !watches();
        return reads.then_some(if named { Verb::Get } else { Verb::List });
    }
    if route.is_watch {
        return (method == Method::GET).then_some(Verb::Watch);
    }
    if is_connect(part) {
        return None;
    }
    match (method.as_str(), named, part) {
        ("POST", true, "binding" | "eviction" | "token") => Some(Verb::Create),
        ("PUT", true, "finalize") => Some(Verb::Update),
        (_, _, "binding" | "eviction" | "token" | "finalize") => None,
        ("GET", true, "log") => Some(Verb::Get),
        (_, _, "log") => None,
        ("GET" | "HEAD", true, _) => Some(Verb::Get),
        ("PUT", true, _) => Some(Verb::Update),
        ("PATCH", true, _) => Some(Verb::Patch),
        ("DELETE", true, "") => Some(Verb::Delete),
        ("GET" | "HEAD", false, _) => Some(if watches() { Verb::Watch } else { Verb::List }),
        ("POST", false, _) if !everywhere => Some(Verb::Create),
        ("DELETE", false, _) if !everywhere => Some(Verb::DeleteCollection),
        _ => None,
    }
}
