//! Connections to the streaming server of the runtime: SPDY/3.1 after an upgrade, at the loopback of this machine.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, UPGRADE};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1::handshake;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// Protocol of commands and of containers' own processes, in which the end has a status.
pub const COMMANDS: &str = "v4.channel.k8s.io";
/// Protocol of port forwarding.
pub const PORT_FORWARD: &str = "portforward.k8s.io";

/// Time within which a connection must be made and upgraded.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a message that says why a connection is not upgraded.
const MAX_MESSAGE: usize = 4096;

/// An upgraded connection.
pub type Connection = TokioIo<Upgraded>;

/// A connection to the streaming server that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The runtime names a place that the agent does not connect to.
    #[error(
        "the container runtime streams at {0:?}, which is not the loopback of this machine over http"
    )]
    Place(String),
    /// The connection broke.
    #[error("the streaming server of the container runtime cannot be reached")]
    Connection(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server did not answer in time.
    #[error("the streaming server of the container runtime does not answer")]
    Timeout,
    /// The server refused.
    #[error("the streaming server of the container runtime answers {status}: {message}")]
    Refused {
        /// Its status.
        status: StatusCode,
        /// Its message.
        message: String,
    },
}

/// Connects to a URL that the runtime has answered.
///
/// # Errors
/// If it is not one of the loopback, or the connection cannot be upgraded to this protocol.
pub async fn connect(url: &str, protocol: &str) -> Result<Connection, Error> {
    let (address, path) = place(url).ok_or_else(|| Error::Place(url.to_owned()))?;
    let upgraded = timeout(TIMEOUT, upgrade(address, &path, protocol)).await;
    upgraded.unwrap_or(Err(Error::Timeout))
}

async fn upgrade(address: SocketAddr, path: &str, protocol: &str) -> Result<Connection, Error> {
    let stream = TcpStream::connect(address).await.map_err(broken)?;
    stream.set_nodelay(true).map_err(broken)?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let _running = AbortOnDropHandle::new(tokio::spawn(connection.with_upgrades()));
    let request = Request::post(path)
        .header(HOST, address.to_string())
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "SPDY/3.1")
        .header("X-Stream-Protocol-Version", protocol)
        .body(Empty::<Bytes>::new());
    let answer = sender.send_request(request.map_err(broken)?).await;
    let answer = answer.map_err(broken)?;
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        let upgraded = hyper::upgrade::on(answer).await;
        return Ok(TokioIo::new(upgraded.map_err(broken)?));
    }
    let status = answer.status();
    let body = Limited::new(answer.into_body(), MAX_MESSAGE)
        .collect()
        .await;
    let body = body
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let message = String::from_utf8_lossy(&body).trim().to_owned();
    Err(Error::Refused { status, message })
}

fn broken(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::Connection(error.into())
}

/// Returns the address and the path of a URL of the loopback.
fn place(url: &str) -> Option<(SocketAddr, String)> {
    let uri: Uri = url.parse().ok()?;
    let host = uri.host()?.trim_matches(['[', ']']);
    let ip: IpAddr = host.parse().ok()?;
    let is_ours = uri.scheme_str() == Some("http") && ip.is_loopback();
    let path = uri.path_and_query()?.as_str().to_owned();
    is_ours.then(|| (SocketAddr::new(ip, uri.port_u16().unwrap_or(80)), path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_loopback_is_connected_to() {
        let address = |url| place(url).map(|(address, path)| format!("{address}{path}"));
        let of = |url| address(url).unwrap_or_default();
        assert_eq!(
            of("http://127.0.0.1:4000/exec/abc"),
            "127.0.0.1:4000/exec/abc"
        );
        assert_eq!(
            of("http://[::1]:4000/exec/abc?x=1"),
            "[::1]:4000/exec/abc?x=1"
        );
        for url in [
            "http://10.0.0.1:4000/exec/abc",
            "http://169.254.169.254/latest",
            "http://localhost:4000/exec/abc",
            "https://127.0.0.1:4000/exec/abc",
            "/exec/abc",
            "",
        ] {
            assert_eq!(address(url), None, "{url}");
        }
    }

    #[tokio::test]
    async fn a_server_that_refuses_says_why() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/exec/abc", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let read = stream.read(&mut [0; 4096]).await.unwrap();
            assert!(read > 0);
            let answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nno session";
            stream.write_all(answer.as_bytes()).await.unwrap();
        });
        let refused = connect(&url, COMMANDS).await.err().unwrap().to_string();
        assert!(
            refused.ends_with("answers 404 Not Found: no session"),
            "{refused}"
        );
        serving.await.unwrap();
        let elsewhere = connect("http://192.0.2.1:1/exec/abc", COMMANDS).await;
        assert!(matches!(elsewhere, Err(Error::Place(_))));
    }
}
