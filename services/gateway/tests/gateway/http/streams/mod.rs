//! Connections to containers and Pods: the protocols of clients, with an agent that is made up.

mod agent;
mod container;
pub mod failed_upgrade;
mod kubelet;
mod port_forward;
mod proxy;
mod refused;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use futures::{SinkExt as _, StreamExt as _};
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderName, Request};
use serde_json::json;
use setpoint_gateway::DialPolicy;
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_gateway::registry::Registry;
use setpoint_store::{Memory, cache};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::http::api::Api;
use agent::Agent;

/// The Pod of most tests.
pub const POD: &str = "/api/v1/namespaces/default/pods/web";

/// A gateway, and the agent of the node of the Pod `web`.
pub struct Plane {
    pub api: Api,
    pub server: InProcess,
    pub agent: Agent,
}

impl Plane {
    pub async fn start() -> Self {
        Self::with_pages(Router::new()).await
    }

    /// Like [`Self::start`], with these pages of the agent.
    pub async fn with_pages(pages: Router) -> Self {
        Self::with(pages, |registry| registry).await
    }

    /// Like [`Self::with_pages`], with further settings of the gateway.
    pub async fn with(pages: Router, with: impl FnOnce(Registry) -> Registry) -> Self {
        Self::over(None, pages, with).await
    }

    /// Like [`Self::with_pages`], over TLS between the gateway and the agent.
    pub async fn secured(identities: tls::Identities, pages: Router) -> Self {
        Self::over(Some(identities), pages, |registry| registry).await
    }

    async fn over(
        identities: Option<tls::Identities>,
        pages: Router,
        with: impl FnOnce(Registry) -> Registry,
    ) -> Self {
        let (own, agents) = identities.map(|two| (two.gateway, two.agent)).unzip();
        let policy = DialPolicy::default().with_credentials(own);
        let (store, settings) = (Arc::new(Memory::default()), cache::Settings::default());
        let with = |registry: Registry| with(registry.with_dial_policy(policy));
        let registry = in_process::registry_with(store, settings, with).await;
        let api = Api::over(registry).await;
        let agent = Agent::start(agents, pages).await;
        let node = agent::node("n", agent.address);
        api.post("/api/v1/nodes", node).await.ok();
        let container =
            |name: &str| json!({ "name": name, "image": "i", "ports": [{ "containerPort": 80 }] });
        for (name, node, containers) in [
            ("web", "n", vec![container("main")]),
            ("two", "n", vec![container("a"), container("b")]),
            ("pending", "", vec![container("main")]),
        ] {
            let pod = json!({
                "metadata": { "name": name, "labels": { "app": "web" } },
                "spec": { "nodeName": node, "containers": containers },
            });
            let pods = "/api/v1/namespaces/default/pods";
            api.post(pods, pod).await.ok();
        }
        let server = api.listen().await;
        Self { api, server, agent }
    }

    /// Opens a WebSocket.
    ///
    /// # Errors
    /// The response, if the server refuses it.
    pub async fn open(
        &self,
        path: &str,
        protocols: &str,
    ) -> Result<Client, http::Response<Option<Vec<u8>>>> {
        let headers = [(SEC_WEBSOCKET_PROTOCOL, protocols)];
        let headers = headers.into_iter().filter(|(_, value)| !value.is_empty());
        Client::open(self.server.address, path, headers).await
    }

    /// Opens a WebSocket that is accepted.
    pub async fn socket(&self, path: &str, protocols: &str) -> Client {
        match self.open(path, protocols).await {
            Ok(client) => client,
            Err(refused) => panic!("{refused:?}"),
        }
    }
}

/// A WebSocket.
pub struct Client {
    pub socket: WebSocketStream<TcpStream>,
    /// The subprotocol that the server has chosen.
    pub protocol: String,
}

impl Client {
    /// Opens a WebSocket with these headers.
    ///
    /// # Errors
    /// The response, if the server refuses it.
    pub async fn open(
        address: SocketAddr,
        path: &str,
        headers: impl IntoIterator<Item = (HeaderName, &str)>,
    ) -> Result<Self, http::Response<Option<Vec<u8>>>> {
        let url = format!("ws://{address}{path}");
        let mut request: Request<()> = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(address).await.unwrap();
        match client_async(request, stream).await {
            Ok((socket, response)) => {
                let protocol = response.headers().get(SEC_WEBSOCKET_PROTOCOL);
                let protocol = protocol.map_or("", |name| name.to_str().unwrap());
                Ok(Self {
                    socket,
                    protocol: protocol.to_owned(),
                })
            }
            Err(tungstenite::Error::Http(response)) => Err(*response),
            Err(error) => panic!("{error}"),
        }
    }

    pub async fn send(&mut self, message: impl Into<Message>) {
        self.socket.send(message.into()).await.unwrap();
    }

    /// Returns the next message with data; `None` at the end.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        while let Some(message) = self.socket.next().await {
            match message {
                Ok(Message::Binary(data)) => return Some(data.to_vec()),
                Ok(Message::Text(text)) => return Some(text.as_bytes().to_vec()),
                Ok(Message::Close(frame)) => {
                    let code = frame.map(|frame| frame.code);
                    assert_eq!(code, Some(CloseCode::Normal));
                    return None;
                }
                Err(_) => return None,
                Ok(_) => {}
            }
        }
        None
    }

    /// Returns all that comes on a channel until the end, and on that of errors.
    pub async fn rest(&mut self, channel: u8) -> (String, String) {
        let (mut data, mut errors) = (Vec::new(), Vec::new());
        while let Some(message) = self.next().await {
            match message.split_first() {
                Some((number, rest)) if *number == channel => data.extend_from_slice(rest),
                Some((3, rest)) => errors.extend_from_slice(rest),
                other => panic!("{other:?}"),
            }
        }
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (text(data), text(errors))
    }
}
