//! Protection against cross-site requests of web pages and against DNS rebinding.
//!
//! A web page can send requests to any address that its browser reaches. It cannot forge the headers `Origin` and
//! `Sec-Fetch-Site`, which identify it. A page whose own name resolves to this machine (DNS rebinding) passes as the
//! same site; its name is in `Host`.
//!
//! Programs need no `Origin`, but Go's package `x/net/websocket` demands one of its users, and those of Kubernetes'
//! API, its end-to-end tests among them, name `http://localhost`. A handshake of WebSocket with it is accepted, unless
//! it is that of a browser: a page of the machine's own port 80 would name it, too. Every browser sends
//! `User-Agent: Mozilla/…`, newer ones `Sec-Fetch-…` as well, and a page can neither remove nor change a header of this
//! handshake. No other origin is accepted that way, so pages of other local ports and of rebound names stay foreign.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN, UPGRADE, USER_AGENT};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri};
use setpoint_proto::{ApiError, Reason};

/// The origin that programs name for want of one.
const PLACEHOLDER: &str = "http://localhost";

/// Accepted names in the `Host` header, in addition to IPs and `localhost`. `*` accepts any name.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Vec<String>);

impl FromIterator<String> for Hosts {
    fn from_iter<T: IntoIterator<Item = String>>(names: T) -> Self {
        Self(names.into_iter().filter(|name| !name.is_empty()).collect())
    }
}

impl Hosts {
    /// Rejects requests that a page of another site sent.
    ///
    /// # Errors
    /// `Forbidden`, with the header that is not accepted.
    pub(crate) fn check(&self, request: &Parts) -> Result<(), ApiError> {
        let authority = authority(&request.uri, &request.headers);
        if let Some(authority) = authority
            && !self.accepts(authority)
        {
            return Err(forbidden(format!(
                "the host {authority:?} is not accepted; the setting allowed_hosts can add it"
            )));
        }
        check_origin(&request.headers, authority.unwrap_or_default())
    }

    fn accepts(&self, authority: &str) -> bool {
        let Ok(authority) = authority.parse::<Authority>() else {
            return false;
        };
        let host = authority.host().trim_end_matches('.');
        let ip = host.trim_start_matches('[').trim_end_matches(']');
        let named = |name: &String| name == "*" || name.eq_ignore_ascii_case(host);
        // RFC 6761: names below localhost are loopback, too. An IP cannot be rebound.
        let local = host.to_ascii_lowercase();
        local == "localhost"
            || local.ends_with(".localhost")
            || ip.parse::<IpAddr>().is_ok()
            || self.0.iter().any(named)
    }
}

/// Returns host and port that the client requested; `None` for HTTP/1.0 without `Host`, which browsers do not send.
fn authority<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let header = headers.get(HOST).map(|host| host.to_str().unwrap_or("?"));
    header.or_else(|| uri.authority().map(Authority::as_str))
}

fn check_origin(headers: &HeaderMap, authority: &str) -> Result<(), ApiError> {
    let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
    if !matches!(site, None | Some(b"same-origin" | b"none")) {
        return Err(forbidden("cross-site requests are not accepted"));
    }
    let Some(origin) = headers.get(ORIGIN) else {
        return Ok(());
    };
    let own = |scheme: &[u8]| {
        let rest = origin.as_bytes().strip_prefix(scheme);
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(authority.as_bytes()))
    };
    let placeholder = origin == PLACEHOLDER && is_program(headers);
    match own(b"http://") || own(b"https://") || placeholder {
        true => Ok(()),
        false => Err(forbidden(format!(
            "requests of the origin {origin:?} are not accepted"
        ))),
    }
}

/// Returns whether a handshake of WebSocket is that of a program, not of a browser.
fn is_program(headers: &HeaderMap) -> bool {
    let is_socket = headers
        .get(UPGRADE)
        .is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket"));
    let agent = headers.get(USER_AGENT).map(|agent| agent.as_bytes());
    let is_browser = agent.is_some_and(|agent| agent.starts_with(b"Mozilla/"))
        || headers
            .keys()
            .any(|name| name.as_str().starts_with("sec-fetch-"));
    is_socket && !is_browser
}

fn forbidden(message: impl Into<String>) -> ApiError {
    ApiError::new(Reason::Forbidden, message)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn is_accepted(headers: &[(&str, &str)]) -> bool {
        let mut request = Request::get("/api");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let hosts: Hosts = ["gateway".to_owned()].into_iter().collect();
        hosts.check(&parts).is_ok()
    }

    /// Checks F4.
    #[test]
    fn only_local_and_configured_hosts_are_accepted() {
        for host in [
            "127.0.0.1:6443",
            "[::1]:6443",
            "10.1.2.3",
            "localhost:1",
            "LOCALHOST",
            "setpoint.localhost",
            "gateway:6443",
            "Gateway",
        ] {
            assert!(is_accepted(&[("host", host)]), "{host}");
        }
        assert!(is_accepted(&[]), "HTTP/1.0 without Host");
        for host in [
            "evil.example:6443",
            "gateway.evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "a b",
        ] {
            assert!(!is_accepted(&[("host", host)]), "{host}");
        }
    }

    /// Checks F4.
    #[test]
    fn requests_of_pages_of_other_sites_are_rejected() {
        let host = ("host", "127.0.0.1:6443");
        for other in [
            ("origin", "http://evil.example"),
            ("origin", "http://127.0.0.1:8080"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert!(!is_accepted(&[host, other]), "{other:?}");
        }
        for own in [
            ("origin", "http://127.0.0.1:6443"),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "none"),
        ] {
            assert!(is_accepted(&[host, own]), "{own:?}");
        }
    }

    /// Checks F4.
    #[test]
    fn a_program_may_name_localhost_as_the_origin_of_a_websocket_and_a_browser_may_not() {
        let host = ("host", "127.0.0.1:6443");
        let socket = ("upgrade", "websocket");
        let local = ("origin", "http://localhost");
        assert!(is_accepted(&[host, socket, local]));
        let go = ("user-agent", "e2e.test/v1.36.0 (linux/amd64)");
        assert!(is_accepted(&[host, socket, local, go]));
        for browser in [
            ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-mode", "websocket"),
        ] {
            assert!(!is_accepted(&[host, socket, local, browser]), "{browser:?}");
        }
        assert!(!is_accepted(&[host, local]), "no WebSocket");
        assert!(!is_accepted(&[
            ("host", "evil.example:6443"),
            socket,
            local
        ]));
        for other in [
            "http://localhost:8080",
            "https://localhost",
            "http://localhost.evil.example",
            "http://127.0.0.1",
            "http://evil.example",
            "null",
        ] {
            assert!(!is_accepted(&[host, socket, ("origin", other)]), "{other}");
        }
    }
}
