//! What a path names: a kind, and perhaps a namespace, an object and a part of it.

use percent_encoding::percent_decode_str;
use setpoint_codec::{Kind, kinds};
use setpoint_proto::ApiError;

use crate::registry::Target;

/// An object, or all of a kind, by its path.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) kind: &'static Kind,
    /// Empty: all namespaces, or none for a cluster-scoped kind.
    pub(super) namespace: String,
    /// Empty: the whole collection.
    pub(super) name: String,
    /// Empty: the object itself.
    pub(super) subresource: String,
    /// The path is one of those, deprecated for long, that stand for a watch: `/api/v1/watch/…`.
    pub(super) is_watch: bool,
}

impl Route {
    /// Reads `/api/<version>/…` and `/apis/<group>/<version>/…`; `None` if nothing is there.
    pub(super) fn of(path: &str) -> Option<Self> {
        let mut segments = Vec::new();
        for segment in path.strip_prefix('/')?.trim_end_matches('/').split('/') {
            segments.push(percent_decode_str(segment).decode_utf8().ok()?.into_owned());
        }
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["api", version, "watch", rest @ ..] => Self::watched("", version, rest),
            ["apis", group, version, "watch", rest @ ..] => Self::watched(group, version, rest),
            ["api", version, rest @ ..] => Self::below("", version, rest),
            ["apis", group, version, rest @ ..] => Self::below(group, version, rest),
            _ => None,
        }
    }

    fn watched(group: &str, version: &str, path: &[&str]) -> Option<Self> {
        let route = Self::below(group, version, path)?;
        route.subresource.is_empty().then_some(Self {
            is_watch: true,
            ..route
        })
    }

    fn below(group: &str, version: &str, path: &[&str]) -> Option<Self> {
        let kind_of = |plural| kinds().by_plural(group, version, plural);
        let (kind, namespace, rest) = match path {
            // `namespaces/x/status` is a part of the Namespace, not a kind within it.
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

    /// The same for the registry.
    pub(super) fn target(&self) -> Result<Target, ApiError> {
        Target::new(self.kind, &self.namespace, &self.name, &self.subresource)
    }

    /// The path with its variable parts taken out, for metrics and spans.
    pub(super) fn template(&self) -> String {
        let mut path = super::discovery::path_of(&self.kind.group, &self.kind.version);
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
    use super::*;

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
            let route = Route::of(path).expect(path);
            assert_eq!(route.template(), template);
        }
        let route = Route::of("/api/v1/nodes/a%3Ab").expect("it is a node");
        assert_eq!(route.name, "a:b");
    }

    #[test]
    fn anything_else_names_nothing() {
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
            assert!(Route::of(path).is_none(), "{path}");
        }
    }
}
