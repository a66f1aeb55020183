//! Executes the handlers of probes and lifecycle hooks: commands, HTTP and gRPC requests, connections.

mod exec;
mod grpc;
mod http;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use setpoint_proto::core::{Container, LifecycleHandler, ProbeHandler};
use setpoint_proto::meta::IntOrString;
use setpoint_runtime::streams::dial;
use setpoint_runtime::{Connection, ContainerId, Error, Runtime};
use tokio::time::timeout;

use crate::pod::duration;

/// The version of Kubernetes whose probes these are, for user agents.
const VERSION: &str = setpoint_model::version::KUBERNETES;
/// Maximum number of bytes of an output or a body that are read.
const MAX_OUTPUT: usize = 10 << 10;

/// A running container, with all that handlers need to know about it.
#[derive(Clone)]
pub struct Target<R> {
    /// The runtime that runs it.
    pub runtime: R,
    /// The attempt.
    pub id: ContainerId,
    /// Its spec.
    pub container: Arc<Container>,
    /// Address of the Pod.
    pub ip: Ipv4Addr,
}

/// The result of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The container passed.
    Success,
    /// The container passed, with a remark for users.
    Warning(String),
    /// The container did not pass, for this reason.
    Failure(String),
}

impl<R: Runtime> Target<R> {
    /// Executes the handler of a probe.
    ///
    /// # Errors
    /// If it could not be executed, which says nothing about the container.
    pub async fn probe(&self, handler: &ProbeHandler, limit: Duration) -> Result<Outcome, String> {
        if let Some(action) = &handler.exec {
            self.probe_command(&action.command, limit).await
        } else if let Some(action) = &handler.http_get {
            self.probe_http(action, limit).await
        } else if let Some(action) = &handler.tcp_socket {
            let port = self.port(&action.port)?;
            self.probe_port(&action.host, port, limit).await
        } else if let Some(action) = &handler.grpc {
            Ok(self.probe_grpc(action, limit).await)
        } else {
            Err(format!("missing probe handler for {}", self.container.name))
        }
    }

    /// Executes a lifecycle hook.
    ///
    /// # Errors
    /// If it failed, with the reason.
    pub async fn run_hook(&self, handler: &LifecycleHandler) -> Result<(), String> {
        if let Some(action) = &handler.exec {
            self.run_command(&action.command).await
        } else if let Some(action) = &handler.http_get {
            self.request_hook(action).await
        } else if let Some(action) = &handler.sleep {
            let seconds = u64::try_from(action.seconds).unwrap_or_default();
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok(())
        } else {
            Err("invalid handler".to_owned())
        }
    }

    async fn probe_port(&self, host: &str, port: u16, limit: Duration) -> Result<Outcome, String> {
        let named = match host {
            "" => self.ip.to_string(),
            host => host.to_owned(),
        };
        let connected = timeout(limit, self.connect(host, port)).await;
        Ok(match connected {
            Ok(Ok(_)) => Outcome::Success,
            Ok(Err(error)) => Outcome::Failure(error.to_string()),
            Err(_) => Outcome::Failure(format!("dial tcp {named}:{port}: i/o timeout")),
        })
    }

    /// Connects to a port of the Pod, or of another host if one is named.
    async fn connect(&self, host: &str, port: u16) -> Result<Connection, Error> {
        if host.is_empty() || host == self.ip.to_string() {
            return self.runtime.connect(&self.id.uid, port).await;
        }
        let unknown = || Error::Config(format!("dial tcp: lookup {host}: no such host"));
        let mut found = tokio::net::lookup_host((host, port))
            .await
            .map_err(|_| unknown())?;
        dial(found.next().ok_or_else(unknown)?).await
    }

    /// Resolves a port that may be the name of one of the container's ports.
    fn port(&self, port: &IntOrString) -> Result<u16, String> {
        let number = match port.r#type {
            0 => port.int_val,
            _ => {
                let mut ports = self.container.ports.iter();
                let named = ports.find(|known| known.name == port.str_val);
                match named.map(|named| named.container_port) {
                    Some(number) => number,
                    None => port.str_val.parse().unwrap_or_default(),
                }
            }
        };
        let number = u16::try_from(number).ok().filter(|number| *number > 0);
        number.ok_or_else(|| {
            format!(
                "couldn't find port: {:?} in container {:?}",
                port.str_val, self.container.name
            )
        })
    }
}

/// Returns the message of a request that was not answered in time.
fn timed_out(limit: Duration) -> String {
    format!("within {}", duration::print(limit))
}

#[cfg(test)]
mod tests;
