//! Parses paths into a kind, a namespace, a name and a subresource.

use setpoint_codec::rest::path_of;
use setpoint_codec::{Kind, KindTable};
use setpoint_proto::ApiError;

use setpoint_kinds::Target;

/// An object or a collection, as a path names it.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) kind: &'static Kind,
    /// Empty for all namespaces, and for cluster-scoped kinds.
    pub(crate) namespace: String,
    /// Empty for a collection.
    pub(crate) name: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
    /// Whether it is one of the deprecated paths of watches, `/api/v1/watch/…`.
    pub(crate) is_watch: bool,
}

impl Route {
    /// Reads the decoded segments of `/api/<version>/…` and `/apis/<group>/<version>/…`. Returns `None` if there is no
    /// such resource.
    pub(super) fn of(kinds: &KindTable, segments: &[&str]) -> Option<Self> {
        match segments {
            ["api", version, "watch", rest @ ..] => Self::watched(kinds, "", version, rest),
            ["apis", group, version, "watch", rest @ ..] => {
                Self::watched(kinds, group, version, rest)
            }
            ["api", version, rest @ ..] => Self::below(kinds, "", version, rest),
            ["apis", group, version, rest @ ..] => Self::below(kinds, group, version, rest),
            _ => None,
        }
    }

    fn watched(kinds: &KindTable, group: &str, version: &str, path: &[&str]) -> Option<Self> {
        let route = Self::below(kinds, group, version, path)?;
        route.subresource.is_empty().then_some(Self {
            is_watch: true,
            ..route
        })
    }

    fn below(kinds: &KindTable, group: &str, version: &str, path: &[&str]) -> Option<Self> {
        let kind_of = |plural| kinds.by_plural(group, version, plural);
        let (kind, namespace, rest) = match path {
            // `namespaces/x/status` is a subresource of the Namespace, not a kind within it.
            ["namespaces", namespace, plural, rest @ ..] if kind_of(plural).is_some() => {
                (kind_of(plural)?, *namespace, rest)
            }
            [plural, rest @ ..] => (kind_of(plural)?, "", rest),
            [] => return None,
        };
        let (name, subresource) = match rest {
            [] => ("", ""),
            [name] => (*name, ""),
            [name, subresource] => (*name, *subresource),
            // What follows is for the server behind it.
            [name, "proxy", ..] => (*name, "proxy"),
            _ => return None,
        };
        let misplaced = if kind.namespaced {
            namespace.is_empty() && !name.is_empty()
        } else {
            !namespace.is_empty()
        };
        let known = subresource.is_empty() || kind.has_subresource(subresource);
        (known && !misplaced).then(|| Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
            subresource: subresource.into(),
            is_watch: false,
        })
    }

    /// Returns the target of the registry.
    pub(crate) fn target(&self) -> Result<Target, ApiError> {
        Target::new(self.kind, &self.namespace, &self.name, &self.subresource)
    }

    /// Returns the path with placeholders for its variable segments, for metrics and spans.
    pub(crate) fn template(&self) -> String {
        let mut path = path_of(&self.kind.group, &self.kind.version);
        if self.is_watch {
            path += "/watch";
        }
        if !self.namespace.is_empty() {
            path += "/namespaces/{namespace}";
        }
        path = path + "/" + &self.kind.plural;
        if !self.name.is_empty() {
            path += "/{name}";
        }
        if !self.subresource.is_empty() {
            path = path + "/" + &self.subresource;
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use std::sync::Arc;

    use super::*;
    use crate::request::RequestInfo;

    fn route(path: &str) -> Option<Arc<Route>> {
        let uri = path.parse().expect("a path");
        RequestInfo::of(&KindTable::default(), &Method::GET, &uri).route
    }

    #[test]
    fn a_path_names_its_target() {
        for (path, template) in [
            ("/api/v1/pods", "/api/v1/pods"),
            (
                "/api/v1/namespaces/default/pods/",
                "/api/v1/namespaces/{namespace}/pods",
            ),
            (
                "/api/v1/namespaces/default/pods/web",
                "/api/v1/namespaces/{namespace}/pods/{name}",
            ),
            ("/api/v1/namespaces/default", "/api/v1/namespaces/{name}"),
            (
                "/api/v1/namespaces/default/status",
                "/api/v1/namespaces/{name}/status",
            ),
            (
                "/api/v1/watch/namespaces/default/pods/web",
                "/api/v1/watch/namespaces/{namespace}/pods/{name}",
            ),
            (
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
            ),
        ] {
            let found = route(path).expect(path);
            assert_eq!(found.template(), template);
        }
        let found = route("/api/v1/nodes/a%3Ab").expect("it is a node");
        assert_eq!(found.name, "a:b");
    }

    #[test]
    fn other_paths_have_no_route() {
        for path in [
            "/",
            "/api/v1",
            "/api/v2/pods",
            "/api/v1/gadgets",
            "/api/v1/pods/web",
            "/api/v1/namespaces/default/nodes/a",
            "/api/v1/namespaces/default/pods/web/nothing",
            "/api/v1/namespaces/default/pods/web/status/more",
            "/apis/apps/v1beta1/deployments",
            "/api/v1/watch/namespaces/default/pods/web/status",
        ] {
            assert!(route(path).is_none(), "{path}");
        }
    }
}
