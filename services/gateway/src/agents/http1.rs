//! Requests of HTTP/1.1 to an agent.

use axum::body::Body;
use http::{HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt as _, Limited};
use hyper::client::conn::http1::SendRequest;
use setpoint_proto::NODE_HEADER;
use tokio::time::timeout;

use super::{AgentAddress, TIMEOUT};

/// The maximum size of a response without content.
const NOTHING: usize = 1 << 10;

/// Waits until the agent has proven itself on a new connection; then adds to `page`, a request to it, the name of the
/// node and the proof that a gateway sends it.
///
/// # Errors
/// If the agent does not prove itself.
pub(crate) async fn prove(
    at: &AgentAddress,
    connection: &mut SendRequest<Body>,
    page: &mut Request<Body>,
) -> Result<(), String> {
    let challenge = at.challenge();
    let request = challenge.request()?.map(|()| Body::empty());
    let answering = async {
        let response = connection.send_request(request).await?;
        let (head, body) = response.into_parts();
        // The connection is used again once the response has ended.
        let ended = Limited::new(body, NOTHING).collect().await;
        connection.ready().await?;
        Ok::<_, hyper::Error>((head, ended.is_ok()))
    };
    let answer = timeout(TIMEOUT, answering).await;
    let answer = answer.map_err(|_| "the node's agent does not answer")?;
    let (head, _) = answer.map_err(|error| error.to_string())?;
    let session = challenge.verify(head.status, &head.headers)?;
    let node = HeaderValue::try_from(at.node()).map_err(|error| error.to_string())?;
    page.headers_mut()
        .insert(HeaderName::from_static(NODE_HEADER), node);
    session.sign(page);
    Ok(())
}
