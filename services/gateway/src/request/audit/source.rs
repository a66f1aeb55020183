//! The origin of a request, by its connection and headers.

use std::net::IpAddr;

use http::header::USER_AGENT;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use setpoint_audit::{Head, User};
use setpoint_host::serve::Peer;
use setpoint_kinds::Identity;
use setpoint_proto::Traceparent;
use setpoint_proto::trace::TRACEPARENT;
use uuid::Uuid;

/// The header with the id of a request, in requests and responses.
pub(super) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
const FORWARDED_FOR: &str = "x-forwarded-for";
const REAL_IP: &str = "x-real-ip";
/// The largest length of an id that a client chooses, in bytes. Upstream has no limit.
const LONGEST_ID: usize = 128;
/// The largest length of a `User-Agent` in events, in bytes, and what follows one that was cut, as upstream.
const LONGEST_AGENT: usize = 1024;
const TRUNCATED: &str = "...TRUNCATED";
/// The largest number of addresses in an event. Upstream has no limit.
const MOST_ADDRESSES: usize = 32;

/// Returns the id of a request: the client's, if it is printable and not too long, or a new one.
pub(super) fn audit_id(headers: &HeaderMap) -> HeaderValue {
    let is_plain = |id: &&HeaderValue| {
        let bytes = id.as_bytes();
        (1..=LONGEST_ID).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    };
    let given = headers.get(AUDIT_ID).filter(is_plain).cloned();
    given.unwrap_or_else(|| {
        let mut text = Uuid::encode_buffer();
        let text = new_id().hyphenated().encode_lower(&mut text);
        HeaderValue::from_str(text).expect("a UUID is printable")
    })
}

/// Returns a new id. Its bits are of the thread's generator, since each response needs some, audited or not.
pub(super) fn new_id() -> Uuid {
    uuid::Builder::from_random_bytes(rand::random()).into_uuid()
}

/// The source of a request.
pub(super) struct Source {
    /// The head of its events, of which the verb and the user are not known yet.
    pub(super) head: Head,
    pub(super) traceparent: Option<Traceparent>,
}

impl Source {
    /// Returns the source of a request that has this id.
    pub(super) fn of(parts: &Parts, id: &HeaderValue) -> Self {
        let (headers, uri) = (&parts.headers, &parts.uri);
        let peer = parts.extensions.get::<Peer>();
        let peer = peer.map(|Peer(peer)| peer.ip().to_canonical());
        let uri = uri.path_and_query().map_or("/", |uri| uri.as_str());
        Self {
            head: Head {
                audit_id: id.to_str().unwrap_or_default().to_owned(),
                request_uri: uri.to_owned(),
                source_ips: source_ips(headers, peer),
                user_agent: user_agent(headers),
                received: Timestamp::now(),
                ..Head::default()
            },
            traceparent: text(headers, TRACEPARENT).and_then(|text| text.parse().ok()),
        }
    }
}

/// Returns the addresses that a request came from (upstream: `SourceIPs`): those that proxies have added, and that of
/// the connection. A client sets all but the last as it likes.
fn source_ips(headers: &HeaderMap, peer: Option<IpAddr>) -> Vec<String> {
    let forwarded = text(headers, FORWARDED_FOR).unwrap_or_default().split(',');
    let forwarded = forwarded.filter_map(|one| one.trim().parse().ok());
    let mut found: Vec<IpAddr> = forwarded.take(MOST_ADDRESSES).collect();
    let real = text(headers, REAL_IP).and_then(|one| one.trim().parse().ok());
    found.extend(real.filter(|real| !found.contains(real)));
    found.extend(peer.filter(|peer| found.last() != Some(peer)));
    found.iter().map(IpAddr::to_string).collect()
}

fn user_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(USER_AGENT).map(HeaderValue::as_bytes);
    let agent = agent.unwrap_or_default();
    match agent.len() > LONGEST_AGENT {
        true => String::from_utf8_lossy(&agent[..LONGEST_AGENT]).into_owned() + TRUNCATED,
        false => String::from_utf8_lossy(agent).into_owned(),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns a user as events have it.
pub(super) fn user(of: &Identity) -> User {
    let Identity {
        name,
        uid,
        groups,
        extra,
    } = of.clone();
    User {
        name,
        uid,
        groups,
        extra,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        });
        HeaderMap::from_iter(pairs)
    }

    #[test]
    fn a_client_may_choose_an_id_that_is_short_and_printable() {
        let id = |value: &str| audit_id(&headers(&[("audit-id", value)]));
        assert_eq!(id("of-the-client"), "of-the-client");
        for refused in ["", "a b", &"a".repeat(129)] {
            let made = id(refused);
            assert_eq!(made.len(), 36, "{refused}");
        }
        let none = HeaderMap::new();
        assert_ne!(audit_id(&none), audit_id(&none));
    }

    /// The cases of upstream's `TestSourceIPs`.
    #[test]
    fn the_address_of_the_connection_follows_those_of_proxies() {
        let peer = "172.16.0.1".parse().ok();
        for (pairs, expected) in [
            (&[][..], &["172.16.0.1"][..]),
            (
                &[("x-forwarded-for", "10.0.0.1, 10.0.0.2")],
                &["10.0.0.1", "10.0.0.2", "172.16.0.1"],
            ),
            (&[("x-real-ip", "10.0.0.1")], &["10.0.0.1", "172.16.0.1"]),
            (
                &[("x-forwarded-for", "10.0.0.1"), ("x-real-ip", "10.0.0.1")],
                &["10.0.0.1", "172.16.0.1"],
            ),
            (&[("x-forwarded-for", "no, 172.16.0.1")], &["172.16.0.1"]),
        ] {
            assert_eq!(source_ips(&headers(pairs), peer), expected, "{pairs:?}");
        }
    }

    #[test]
    fn a_long_user_agent_is_cut() {
        let long = "a".repeat(2000);
        let found = user_agent(&headers(&[("user-agent", &long)]));
        assert_eq!(found, "a".repeat(1024) + "...TRUNCATED");
    }
}
