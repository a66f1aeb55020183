//! The side of the agent.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use setpoint_proto::NODE_HEADER;
use tonic::Status;

use super::{ADDRESS, Claim, Key, NONCE, PATH, PROOF};
use crate::serve::ConnectionInfo;

/// Admits calls of gateways only. Without a key it admits none.
#[derive(Clone, Debug)]
pub struct Guard(Option<Arc<Identity>>);

/// The identity of an agent.
#[derive(Debug)]
struct Identity {
    key: Key,
    /// The address that it has registered.
    address: Option<SocketAddr>,
    nodes: BTreeSet<String>,
}

impl Guard {
    /// Returns the guard of an agent that has registered these nodes with `address`, `host:port`.
    pub fn new(
        key: Option<Key>,
        address: &str,
        nodes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let identity = |key| Identity {
            key,
            address: address.parse().ok(),
            nodes: nodes.into_iter().map(Into::into).collect(),
        };
        Self(key.map(|key| Arc::new(identity(key))))
    }

    /// Returns the route at which the agent proves itself.
    pub fn router(&self) -> Router {
        let guard = self.clone();
        let prove = move |request: Request| async move { guard.answer(&request) };
        Router::new().route(PATH, get(prove))
    }

    fn answer(&self, request: &Request) -> Response {
        match self.prove(request) {
            Ok(proven) => proven.into_response(),
            Err(why) => (StatusCode::FORBIDDEN, why).into_response(),
        }
    }

    fn prove(&self, request: &Request) -> Result<[(&'static str, String); 2], &'static str> {
        let identity = self.0.as_deref().ok_or(NO_KEY)?;
        let (connection, address) = identity.dialled(request)?;
        let node = text(request.headers(), NODE_HEADER);
        if !identity.nodes.contains(node) {
            return Err("the node is not one of this agent");
        }
        let claim = Claim::Agent {
            node,
            address,
            gateway: text(request.headers(), NONCE),
            connection: connection.nonce(),
        };
        let proof = identity.key.prove(claim);
        Ok([(NONCE, connection.nonce().to_owned()), (PROOF, proof)])
    }

    /// Adds the check to all routes of a router of gRPC.
    pub fn protect(self, router: Router) -> Router {
        self.refuse_by(router, |why| {
            Status::unauthenticated(why)
                .into_http::<Body>()
                .into_response()
        })
    }

    /// Adds the check to all routes of a router of HTTP.
    pub fn protect_pages(self, router: Router) -> Router {
        self.refuse_by(router, |why| {
            (StatusCode::UNAUTHORIZED, why).into_response()
        })
    }

    fn refuse_by(self, router: Router, response: fn(&'static str) -> Response) -> Router {
        router.layer(from_fn(move |request: Request, next: Next| {
            let refused = self.check(&request).err();
            async move {
                match refused {
                    Some(why) => response(why),
                    None => next.run(request).await,
                }
            }
        }))
    }

    /// Checks that a gateway has made the call on this connection.
    fn check(&self, request: &Request) -> Result<(), &'static str> {
        let identity = self.0.as_deref().ok_or(NO_KEY)?;
        let (connection, address) = identity.dialled(request)?;
        let claim = Claim::Call {
            address,
            connection: connection.nonce(),
            method: request.method().as_str(),
            path: request.uri().path(),
        };
        match identity.key.verify(claim, text(request.headers(), PROOF)) {
            true => Ok(()),
            false => Err(NOT_PROVEN),
        }
    }
}

const NO_KEY: &str = "the node agent has no key (setting agent_secret_file) and serves nobody";
const NO_GATEWAY: &str =
    "the node agent serves gateways only: the client has no certificate of one";
const NOT_PROVEN: &str = "the node agent serves gateways only: the call does not prove that its client has their key (setting agent_secret_file)";

impl Identity {
    /// Returns the connection of a request and the address that its client has dialled, if that is one of this agent.
    fn dialled<'r>(
        &self,
        request: &'r Request,
    ) -> Result<(&'r ConnectionInfo, SocketAddr), &'static str> {
        let connection = request.extensions().get::<ConnectionInfo>();
        let connection = connection.ok_or(NOT_PROVEN)?;
        if !connection.is_of_gateway() {
            return Err(NO_GATEWAY);
        }
        let address = text(request.headers(), ADDRESS).parse::<SocketAddr>();
        let address = address.map_err(|_| NOT_PROVEN)?;
        match address == connection.local() || Some(address) == self.address {
            true => Ok((connection, address)),
            false => Err("the address is not one of this agent"),
        }
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    let value = headers.get(name).and_then(|value| value.to_str().ok());
    value.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use axum::routing::post;
    use jiff::Timestamp;
    use setpoint_tls::PeerIdentity;
    use tower::ServiceExt as _;

    use super::super::{Challenge, Session};
    use super::*;

    const CALL: &str = "/setpoint.v1.Node/Usage";
    const PAGE: &str = "/stats/summary";

    fn key(last: char) -> Key {
        Key::new(&format!("0123456789abcde{last}"))
    }

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    /// Returns an agent of the node `n` with a registered address.
    fn agent(key: Option<Key>) -> Router {
        let guard = Guard::new(key, "10.0.0.1:10250", ["n"]);
        let calls = Router::new().route(CALL, post(|| async {}));
        let pages = Router::new().route(PAGE, get(|| async {}));
        let pages = guard.clone().protect_pages(pages);
        guard
            .router()
            .merge(guard.clone().protect(calls))
            .merge(pages)
    }

    async fn send(agent: &Router, connection: &ConnectionInfo, request: Request<()>) -> Response {
        let mut request = request.map(|()| Body::empty());
        request.extensions_mut().insert(connection.clone());
        agent.clone().oneshot(request).await.unwrap()
    }

    async fn session(
        agent: &Router,
        connection: &ConnectionInfo,
        challenge: Challenge,
    ) -> Result<Session, String> {
        let response = send(agent, connection, challenge.request().unwrap()).await;
        challenge.verify(response.status(), response.headers())
    }

    async fn code(
        agent: &Router,
        connection: &ConnectionInfo,
        session: Option<&Session>,
        path: &str,
    ) -> String {
        let mut request = Request::post(CALL).body(()).unwrap();
        if let Some(session) = session {
            session.sign(&mut request);
        }
        *request.uri_mut() = path.parse().unwrap();
        let response = send(agent, connection, request).await;
        let status = response.headers().get("grpc-status");
        status.map_or_else(String::new, |code| code.to_str().unwrap().to_owned())
    }

    /// Checks F21 and DG6.
    #[tokio::test]
    async fn a_call_is_admitted_only_with_a_proof_of_this_connection_address_and_call() {
        let agent = agent(Some(key('f')));
        let [one, other] = [1, 1].map(|port| ConnectionInfo::new(address(port)));
        let challenge = Challenge::new(key('f'), "n", address(1));
        let session = session(&agent, &one, challenge).await.unwrap();
        assert_eq!(code(&agent, &one, Some(&session), CALL).await, "");
        assert_eq!(code(&agent, &one, None, CALL).await, "16");
        assert_eq!(code(&agent, &other, Some(&session), CALL).await, "16");
        let elsewhere = ConnectionInfo::new(address(2));
        assert_eq!(code(&agent, &elsewhere, Some(&session), CALL).await, "16");
        let mut page = Request::get(CALL).body(()).unwrap();
        session.sign(&mut page);
        *page.uri_mut() = PAGE.parse().unwrap();
        let refused = send(&agent, &one, page).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "another path");
        let mut page = Request::get(PAGE).body(()).unwrap();
        session.sign(&mut page);
        assert_eq!(send(&agent, &one, page).await.status(), StatusCode::OK);
    }

    /// Checks V20: the key alone, which all agents have, does not do over TLS.
    #[tokio::test]
    async fn over_tls_only_the_certificate_of_a_gateway_is_served() {
        let agent = agent(Some(key('f')));
        let over_tls = |client: Option<&str>| {
            let client = client.map(|name| PeerIdentity {
                name: name.to_owned(),
                groups: Vec::new(),
                uid: String::new(),
                fingerprint: String::new(),
                not_after: Timestamp::MAX,
            });
            ConnectionInfo::over_tls(address(1), Ok(client))
        };
        let gateway = over_tls(Some("system:setpoint:gateway"));
        let challenge = || Challenge::new(key('f'), "n", address(1));
        let proven = session(&agent, &gateway, challenge()).await.unwrap();
        assert_eq!(code(&agent, &gateway, Some(&proven), CALL).await, "");
        for other in [
            None,
            Some("system:node:m"),
            Some("system:setpoint:scheduler"),
        ] {
            let connection = over_tls(other);
            assert!(session(&agent, &connection, challenge()).await.is_err());
            assert_eq!(code(&agent, &connection, Some(&proven), CALL).await, "16");
        }
    }

    /// Checks DG6: neither an impostor, nor a relay to an agent at another address, nor another agent is taken for it.
    #[tokio::test]
    async fn an_agent_proves_itself_for_its_own_nodes_at_its_own_addresses() {
        let connection = ConnectionInfo::new(address(1));
        let (genuine, impostor) = (agent(Some(key('f'))), agent(Some(key('e'))));
        let of = |node, address| Challenge::new(key('f'), node, address);
        let registered = "10.0.0.1:10250".parse().unwrap();
        for own in [address(1), registered] {
            let proven = session(&genuine, &connection, of("n", own)).await;
            assert!(proven.is_ok(), "{own}");
        }
        for (agent, challenge) in [
            (&impostor, of("n", address(1))),
            (&genuine, of("m", address(1))),
            (&genuine, of("n", address(2))),
            (&agent(None), of("n", address(1))),
        ] {
            let refused = session(agent, &connection, challenge).await.unwrap_err();
            assert!(
                refused.contains("has not proven to be the agent"),
                "{refused}"
            );
        }
    }

    /// Checks F21 and DG6.
    #[tokio::test]
    async fn without_a_key_nobody_is_served() {
        let connection = ConnectionInfo::new(address(1));
        assert_eq!(code(&agent(None), &connection, None, CALL).await, "16");
    }
}
