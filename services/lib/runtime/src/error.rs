//! The error of a runtime.

use crate::streams;

/// The error of a runtime.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such container or sandbox.
    #[error("{0} does not exist")]
    Unknown(String),
    /// The container must stop first.
    #[error("{0} is still running")]
    Running(String),
    /// The container does not run.
    #[error("container {0} is not running")]
    NotRunning(String),
    /// A connection to a Pod could not be established.
    #[error("{0}")]
    Connect(streams::Unconnected),
    /// A command could not be started, or its streams broke.
    #[error("cannot run the command in {container}")]
    Exec {
        /// The container.
        container: String,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The runtime's state files cannot be read or written.
    #[error("cannot read or write the state of {what}")]
    State {
        /// The Pod, container or directory.
        what: String,
        /// The error of the file system.
        #[source]
        source: std::io::Error,
    },
    /// The shim of a container did not start.
    #[error("the shim of {0} did not start in time")]
    Shim(String),
    /// The runtime does not support the request.
    #[error("{0}")]
    Unsupported(String),
    /// The container cannot be started as configured.
    #[error("{0}")]
    Config(String),
    /// The image is not available: not yet, or it cannot be pulled.
    #[error("{message}")]
    Image {
        /// The image.
        image: String,
        /// The kubelet's CamelCase reason.
        reason: &'static str,
        /// Human-readable details.
        message: String,
        /// Whether this call began a pull.
        pulling: bool,
    },
    /// The container engine refused an operation.
    #[error("the container engine cannot {what}: {why}")]
    Refused {
        /// The operation that failed, as an infinitive.
        what: String,
        /// The engine's message.
        why: String,
    },
    /// The container engine did not answer, or its answer cannot be read.
    #[error("the container engine cannot {what}")]
    Engine {
        /// The operation that failed, as an infinitive.
        what: String,
        /// The engine's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
