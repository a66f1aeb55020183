//! URLs as Go reads those of requests: absolute ones, and absolute paths.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::meter::Failure;
use super::super::values::{Key, Map, Val};
use super::convert::count;
use super::{Cost, Entry};
use crate::strfmt::is_request_uri;

/// The parts of a URL; those that are missing are empty.
#[derive(Debug, PartialEq)]
pub(in super::super) struct Url {
    scheme: String,
    user: String,
    host: String,
    path: String,
    query: String,
}

pub(super) const ENTRIES: &[Entry] = &[
    (&["url(string) url"], Cost::First, |args, _| match args {
        [Val::String(text)] => {
            let malformed = || {
                let detail = "URL parse error during conversion from string: parse";
                let text = crate::go::quote(text);
                Failure::Error(format!("{detail} {text}: invalid URI for request"))
            };
            let url = parse(text).ok_or_else(malformed)?;
            Ok(Val::Url(Arc::new(url)))
        }
        _ => Err(Failure::NoOverload),
    }),
    (
        &["isURL(string) bool"],
        Cost::Unit,
        |args, meter| match args {
            [Val::String(text)] => {
                count(text, meter)?;
                Ok(Val::Bool(parse(text).is_some()))
            }
            _ => Err(Failure::NoOverload),
        },
    ),
    (&["url::getScheme() string"], Cost::Unit, |args, _| {
        part(args, |url| url.scheme.clone())
    }),
    (&["url::getHost() string"], Cost::Unit, |args, _| {
        part(args, |url| url.host.clone())
    }),
    (&["url::getHostname() string"], Cost::Unit, |args, _| {
        part(args, |url| {
            let (name, _) = split_port(&url.host);
            name.trim_start_matches('[')
                .trim_end_matches(']')
                .to_owned()
        })
    }),
    (&["url::getPort() string"], Cost::Unit, |args, _| {
        part(args, |url| split_port(&url.host).1.to_owned())
    }),
    (&["url::getEscapedPath() string"], Cost::Unit, |args, _| {
        part(args, |url| escaped(&url.path))
    }),
    (
        &["url::getQuery() map(string, list(string))"],
        Cost::Unit,
        |args, meter| match args {
            [Val::Url(url)] => {
                meter.spend(url.query.len() as u64)?;
                Ok(Val::Map(Map::Made(Arc::new(query(&url.query)))))
            }
            _ => Err(Failure::NoOverload),
        },
    ),
];

fn part<'a>(args: &[Val<'a>], then: impl FnOnce(&Url) -> String) -> Result<Val<'a>, Failure> {
    match args {
        [Val::Url(url)] => Ok(Val::from(then(url))),
        _ => Err(Failure::NoOverload),
    }
}

fn parse(text: &str) -> Option<Url> {
    if !is_request_uri(text) {
        return None;
    }
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if !text.starts_with('/') => (scheme, rest),
        _ => ("", text),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) if !scheme.is_empty() => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        _ => ("", rest),
    };
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    Some(Url {
        scheme: scheme.to_ascii_lowercase(),
        user: user.to_owned(),
        host: host.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
    })
}

fn split_port(host: &str) -> (&str, &str) {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, port),
        _ => (host, ""),
    }
}

/// Escapes what a path cannot have; what is escaped already stays.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(byte.into()),
            other if b"-._~!$&'()*+,;=:@/%[]".contains(&other) => out.push(other.into()),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

fn query<'a>(text: &str) -> BTreeMap<Key, Val<'a>> {
    let mut found: BTreeMap<Key, Vec<Val<'a>>> = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let values = found.entry(Key::String((&*name).into())).or_default();
        values.push(Val::from(&*value));
    }
    let entries = found.into_iter();
    entries
        .map(|(name, values)| (name, Val::from(values)))
        .collect()
}
