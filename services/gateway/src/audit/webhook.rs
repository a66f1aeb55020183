//! The server that lists of events are sent to.

use std::time::Duration;

use bytes::Bytes;
use setpoint_audit::Post;

use crate::kubeconfig;

/// The time in which the server has to answer, as upstream.
const LIMIT: Duration = Duration::from_secs(30);

/// A server.
pub(super) struct Server(pub(super) kubeconfig::Server);

impl Post for Server {
    async fn post(&self, json: Bytes) -> Result<(), String> {
        let answer = self.0.post(json, LIMIT).await;
        answer
            .map_err(|failure| failure.to_string())?
            .of_success()?;
        Ok(())
    }
}
