//! Continue tokens of lists: arbitrary ones, and valid ones of which a part was replaced.

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::dry;
use crate::gateway::json_request;

/// If the first byte is odd, the rest replaces the part of a valid token that the next two bytes select; otherwise the
/// rest is a token.
pub fn run(input: &[u8]) {
    match input {
        [first, start, length, rest @ ..] if first % 2 == 1 => {
            let mut token = valid_token().into_bytes();
            let start = usize::from(*start) % token.len();
            let end = token.len().min(start + usize::from(*length));
            token.splice(start..end, rest.iter().copied());
            list(&String::from_utf8_lossy(&token));
        }
        [_, rest @ ..] => list(&String::from_utf8_lossy(rest)),
        [] => {}
    }
}

/// Returns the token after the first of two namespaces.
fn valid_token() -> String {
    let reply = dry::send(json_request(
        Method::GET,
        "/api/v1/namespaces?limit=1",
        String::new(),
    ));
    let list = reply.json().expect("a list is JSON");
    let token = list["metadata"]["continue"].as_str();
    token.expect("there is a second namespace").to_owned()
}

fn list(token: &str) {
    let token = utf8_percent_encode(token, NON_ALPHANUMERIC);
    for path in ["/api/v1/namespaces", "/api/v1/pods"] {
        let path = format!("{path}?limit=1&continue={token}");
        dry::send(json_request(Method::GET, &path, String::new()));
    }
}
