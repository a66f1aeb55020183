//! The connection to a container runtime: how it is found, what it is, and how its calls are bounded.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::FutureExt as _;
use hyper_util::rt::TokioIo;
use k8s_cri::v1::image_service_client::ImageServiceClient;
use k8s_cri::v1::runtime_service_client::RuntimeServiceClient;
use k8s_cri::v1::{
    CgroupDriver as ReportedDriver, ImageFsInfoRequest, RuntimeConfigRequest, RuntimeStatus,
    StatusRequest, StatusResponse, VersionRequest, VersionResponse,
};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Response, Status};
use tower::service_fn;

use super::images::first_limit;
use super::settings::{CgroupDriver, Settings};
use crate::{Error, Obstacle};

/// Time within which a call must be answered, as the kubelet's `runtimeRequestTimeout`.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
/// Time within which the first call must be answered.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of an answer, as in the kubelet: a list of all containers with their annotations.
const MAX_ANSWER: usize = 16 << 20;
/// The scheme of a socket's path.
const SCHEME: &str = "unix://";

/// A container runtime that serves the CRI.
#[derive(Clone, Debug)]
pub struct Service {
    channel: Channel,
    /// Its name, for example `containerd`.
    pub name: String,
    /// Its version, for example `1.6.20`.
    pub version: String,
    /// The driver by which it manages cgroups.
    pub cgroup_driver: CgroupDriver,
    /// Its optional features, as it reported them at the start.
    pub features: Features,
    /// The directory of its images, if it tells.
    pub root: Option<PathBuf>,
    /// Time within which its first pull of an image must end, twice as long after each failure, at most an hour. An
    /// hour for a runtime that itself ends pulls without progress.
    pub pull_timeout: Duration,
}

/// The optional features of a runtime, as `Node.status` has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Whether it knows `supplementalGroupsPolicy`; `None` if it does not tell its features.
    pub supplemental_groups_policy: Option<bool>,
    /// Its handlers.
    pub handlers: Vec<Handler>,
}

/// A handler of a runtime, which a RuntimeClass names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handler {
    /// Its name; empty for the default handler.
    pub name: String,
    /// Whether it can mount recursively read-only.
    pub recursive_read_only_mounts: bool,
    /// Whether it has user namespaces.
    pub user_namespaces: bool,
}

/// A runtime that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The setting names no socket.
    #[error(
        "cri.endpoint {0:?} must be the path of a socket, as unix:///run/containerd/containerd.sock"
    )]
    Endpoint(String),
    /// Nothing listens at the socket.
    #[error("no container runtime listens at {endpoint}")]
    Socket {
        /// The setting.
        endpoint: String,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// It does not serve the version v1 of the CRI, as containerd before 1.6 or with its CRI plug-in disabled.
    #[error(
        "validate CRI v1 runtime API for endpoint {endpoint:?}: rpc error: code = Unimplemented desc = {message}"
    )]
    NoV1 {
        /// The setting.
        endpoint: String,
        /// The runtime's message.
        message: String,
    },
    /// It did not answer, or with an error.
    #[error("the container runtime at {endpoint} cannot {what}: {status}")]
    Call {
        /// The setting.
        endpoint: String,
        /// The call, as an infinitive.
        what: &'static str,
        /// The answer.
        status: Box<Status>,
    },
}

impl Service {
    /// Connects to a runtime, and asks for its version, its cgroup driver and its features.
    ///
    /// # Errors
    /// If there is none, or it does not serve version v1 of the CRI.
    pub async fn connect(settings: &Settings) -> Result<Self, ConnectError> {
        let endpoint = settings.endpoint.clone();
        let path = socket(&endpoint).ok_or_else(|| ConnectError::Endpoint(endpoint.clone()))?;
        let connected = timeout(CONNECT_TIMEOUT, UnixStream::connect(&path)).await;
        let connected = connected.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        connected.map_err(|source| ConnectError::Socket {
            endpoint: endpoint.clone(),
            source,
        })?;
        let channel = channel(path);
        let mut runtime = RuntimeServiceClient::new(channel.clone());
        let failed = |what| {
            let endpoint = endpoint.clone();
            move |status: Status| ConnectError::of(endpoint, what, status)
        };
        let version = runtime.version(VersionRequest::default());
        let version = within(CONNECT_TIMEOUT, version).await;
        let VersionResponse {
            runtime_name,
            runtime_version,
            ..
        } = version.map_err(failed("tell its version"))?;
        let status = within(CONNECT_TIMEOUT, runtime.status(StatusRequest::default())).await;
        let status = status.map_err(failed("tell its status"))?;
        let driver = cgroup_driver(&mut runtime, settings.cgroup_driver).await;
        let version = runtime_version.trim_start_matches('v').to_owned();
        Ok(Self {
            pull_timeout: first_limit(&runtime_name, &version),
            name: runtime_name,
            version,
            cgroup_driver: driver.map_err(failed("tell its configuration"))?,
            features: Features::of(&status),
            root: image_root(channel.clone()).await,
            channel,
        })
    }

    /// Returns a client of the runtime's own service.
    pub fn runtime(&self) -> RuntimeServiceClient<Channel> {
        RuntimeServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }

    /// Returns a client of the runtime's service of images.
    pub fn images(&self) -> ImageServiceClient<Channel> {
        ImageServiceClient::new(self.channel.clone()).max_decoding_message_size(MAX_ANSWER)
    }

    /// Returns whether it runs containers and can connect them to a network.
    ///
    /// # Errors
    /// With the reason, if it is not or does not answer.
    pub async fn ready(&self) -> Result<(), Obstacle> {
        let mut runtime = self.runtime();
        let answer = call(runtime.status(StatusRequest::default())).await;
        let answer = answer.map_err(|status| Obstacle::Down(message_of(&status)))?;
        obstacle(&answer.status.unwrap_or_default()).map_or(Ok(()), Err)
    }
}

impl Features {
    fn of(status: &StatusResponse) -> Self {
        let handlers = status.runtime_handlers.iter().map(|handler| {
            let features = handler.features.unwrap_or_default();
            Handler {
                name: handler.name.clone(),
                recursive_read_only_mounts: features.recursive_read_only_mounts,
                user_namespaces: features.user_namespaces,
            }
        });
        Self {
            supplemental_groups_policy: status
                .features
                .map(|features| features.supplemental_groups_policy),
            handlers: handlers.collect(),
        }
    }
}

impl ConnectError {
    /// Returns the error of a call; `what` is its purpose, as an infinitive.
    pub(super) fn of(endpoint: String, what: &'static str, status: Status) -> Self {
        match status.code() {
            Code::Unimplemented => Self::NoV1 {
                endpoint,
                message: status.message().to_owned(),
            },
            _ => Self::Call {
                endpoint,
                what,
                status: Box::new(status),
            },
        }
    }
}

/// Returns the path of a socket.
fn socket(endpoint: &str) -> Option<PathBuf> {
    let path = Path::new(endpoint.strip_prefix(SCHEME)?);
    path.is_absolute().then(|| path.to_owned())
}

/// Returns a channel that connects when it is used, again after a runtime was restarted.
fn channel(path: PathBuf) -> Channel {
    let connect = service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    // Connectors name no host, but requests must.
    Endpoint::from_static("http://localhost").connect_with_connector_lazy(connect)
}

/// Returns the cgroup driver of a runtime; `set` if it does not tell.
async fn cgroup_driver(
    runtime: &mut RuntimeServiceClient<Channel>,
    set: CgroupDriver,
) -> Result<CgroupDriver, Status> {
    let asked = runtime.runtime_config(RuntimeConfigRequest::default());
    let answer = match within(CONNECT_TIMEOUT, asked).await {
        Err(status) if status.code() == Code::Unimplemented => return Ok(set),
        answer => answer?,
    };
    let driver = answer.linux.map(|linux| linux.cgroup_driver());
    Ok(match driver {
        Some(ReportedDriver::Systemd) => CgroupDriver::Systemd,
        Some(ReportedDriver::Cgroupfs) => CgroupDriver::Cgroupfs,
        None => set,
    })
}

/// Returns the directory of the images of a runtime, if it tells and this process sees it.
async fn image_root(channel: Channel) -> Option<PathBuf> {
    let mut images = ImageServiceClient::new(channel);
    let asked = images.image_fs_info(ImageFsInfoRequest::default());
    let answer = within(CONNECT_TIMEOUT, asked).await.ok()?;
    let place = answer.image_filesystems.into_iter().next()?.fs_id?;
    let path = PathBuf::from(place.mountpoint);
    path.is_dir().then_some(path)
}

/// Returns the first condition that is false.
fn obstacle(status: &RuntimeStatus) -> Option<Obstacle> {
    let mut broken = status.conditions.iter().filter(|one| !one.status);
    broken.find_map(|condition| match condition.r#type.as_str() {
        "RuntimeReady" => Some(Obstacle::Runtime(condition.message.clone())),
        "NetworkReady" => Some(Obstacle::Network(condition.message.clone())),
        _ => None,
    })
}

/// Waits for an answer for at most [`CALL_TIMEOUT`].
///
/// # Errors
/// The runtime's, and that it has not answered.
pub fn call<T>(
    answer: impl Future<Output = Result<Response<T>, Status>>,
) -> impl Future<Output = Result<T, Status>> {
    within(CALL_TIMEOUT, answer)
}

/// Waits for an answer for at most this long.
///
/// # Errors
/// The runtime's, and that it has not answered.
// An `async fn` would have room for `answer` twice, which is as large as a request is in each layer of its client.
pub fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<Response<T>, Status>>,
) -> impl Future<Output = Result<T, Status>> {
    timeout(limit, answer).map(move |answer| match answer {
        Ok(answer) => answer.map(Response::into_inner),
        Err(_) => {
            let seconds = limit.as_secs();
            Err(Status::deadline_exceeded(format!(
                "no answer within {seconds} s"
            )))
        }
    })
}

/// Returns the error for a call that has failed; `what` is its purpose, as an infinitive.
pub fn failed(what: impl Into<String>) -> impl FnOnce(Status) -> Error {
    let what = what.into();
    move |status| match status.code() {
        Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => Error::Engine {
            what,
            source: Box::new(status),
        },
        _ => Error::Refused {
            what,
            why: status.message().to_owned(),
        },
    }
}

/// Returns whether the runtime reports that the object does not exist.
pub fn is_not_found(status: &Status) -> bool {
    status.code() == Code::NotFound
}

/// Returns the message of a call that has failed.
pub fn message_of(status: &Status) -> String {
    match status.message() {
        "" => status.code().to_string(),
        message => message.to_owned(),
    }
}

impl fmt::Display for CgroupDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cgroupfs => "cgroupfs",
            Self::Systemd => "systemd",
        })
    }
}

#[cfg(test)]
mod tests {
    use k8s_cri::v1::RuntimeCondition;

    use super::*;

    #[test]
    fn an_endpoint_is_the_absolute_path_of_a_socket() {
        let path = socket("unix:///run/containerd/containerd.sock");
        assert_eq!(path, Some("/run/containerd/containerd.sock".into()));
        for endpoint in ["/run/x.sock", "unix://x.sock", "tcp://127.0.0.1:1", ""] {
            assert_eq!(socket(endpoint), None, "{endpoint}");
        }
    }

    #[test]
    fn a_network_that_is_not_ready_says_why() {
        let condition = |kind: &str, status, message: &str| RuntimeCondition {
            r#type: kind.into(),
            status,
            reason: "Reason".into(),
            message: message.into(),
        };
        let mut status = RuntimeStatus {
            conditions: vec![
                condition("RuntimeReady", true, ""),
                condition("NetworkReady", false, "cni plugin not initialized"),
                condition("ContainerdHasNoDeprecationWarnings", false, "old"),
            ],
        };
        let why = Obstacle::Network("cni plugin not initialized".to_owned());
        assert_eq!(obstacle(&status), Some(why));
        status.conditions[1].status = true;
        assert_eq!(obstacle(&status), None);
        status.conditions[0].status = false;
        assert_eq!(obstacle(&status), Some(Obstacle::Runtime(String::new())));
    }
}
