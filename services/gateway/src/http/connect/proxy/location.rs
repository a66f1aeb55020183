//! Rewrites URLs and `Location` headers of backends to the proxy's path.

use http::Uri;

/// The place of a backend.
pub(super) struct Place {
    /// The path of its root.
    pub prefix: String,
    /// The host that it knows itself by.
    pub backend: String,
    /// The host that the client knows.
    pub own: String,
}

/// Returns the proxy path of the backend's root, given a request for `path`.
pub(super) fn prefix<'a>(source: &'a str, path: &str) -> &'a str {
    let trimmed = source
        .strip_suffix(path)
        .or_else(|| source.strip_suffix('/'));
    trimmed.unwrap_or(source)
}

impl Place {
    /// Returns the place of a redirect or link as the client has to ask for it. Other hosts and relative paths stay as
    /// they are.
    pub(super) fn rewrite(&self, to: &str) -> String {
        let Ok(uri) = to.parse::<Uri>() else {
            return to.to_owned();
        };
        let host = uri.authority().map_or("", |authority| authority.as_str());
        let is_other = !host.is_empty() && host != self.backend && host != self.own;
        let path = uri.path();
        // An absolute URL without a path has the path "/".
        let is_relative = host.is_empty() && !to.starts_with('/');
        if is_other || is_relative {
            return to.to_owned();
        }
        let query = uri
            .query()
            .map(|query| format!("?{query}"))
            .unwrap_or_default();
        let path = match path.starts_with(&self.prefix) {
            true => path.to_owned(),
            false => format!("{}{path}", self.prefix),
        };
        match (uri.scheme_str(), host == self.own && !host.is_empty()) {
            (Some(scheme), true) => format!("{scheme}://{host}{path}{query}"),
            _ => format!("{path}{query}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_below_the_path_of_the_backend() {
        let place = Place {
            prefix: "/api/v1/namespaces/a/pods/b/proxy".into(),
            backend: "10.0.0.1:80".into(),
            own: "localhost:6443".into(),
        };
        for (to, expected) in [
            ("/x/?a=b", "/api/v1/namespaces/a/pods/b/proxy/x/?a=b"),
            (
                "http://10.0.0.1:80/x",
                "/api/v1/namespaces/a/pods/b/proxy/x",
            ),
            (
                "http://localhost:6443/x",
                "http://localhost:6443/api/v1/namespaces/a/pods/b/proxy/x",
            ),
            ("http://example.com/x", "http://example.com/x"),
            ("x/y", "x/y"),
            (
                "/api/v1/namespaces/a/pods/b/proxy/x",
                "/api/v1/namespaces/a/pods/b/proxy/x",
            ),
        ] {
            assert_eq!(place.rewrite(to), expected, "{to}");
        }
        assert_eq!(prefix("/p/proxy/x/y", "/x/y"), "/p/proxy");
        assert_eq!(prefix("/p/proxy", "/"), "/p/proxy");
        assert_eq!(prefix("/p/proxy/", "/"), "/p/proxy");
    }
}
