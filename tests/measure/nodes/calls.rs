//! The calls of the CRI by which an agent starts Pods, made without one: the floor of what any agent can do on the same
//! containerd.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use hyper_util::rt::TokioIo;
use k8s_cri::v1::runtime_service_client::RuntimeServiceClient;
use k8s_cri::v1::security_profile::ProfileType;
use k8s_cri::v1::{
    ContainerConfig, ContainerMetadata, CreateContainerRequest, ImageSpec, LinuxContainerConfig,
    LinuxContainerSecurityContext, LinuxPodSandboxConfig, LinuxSandboxSecurityContext, Mount,
    NamespaceMode, NamespaceOption, PodSandboxConfig, PodSandboxMetadata, RemovePodSandboxRequest,
    RunPodSandboxRequest, SecurityProfile, StartContainerRequest, StopPodSandboxRequest,
};
use setpoint_testkit::Containerd;
use setpoint_tests::cri_node::IMAGE;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

use super::COMMAND;

/// The Pods that an agent starts at a time: its setting `workers`.
const PARALLEL: usize = 32;
/// The paths that the agent mounts into each container: files of its own, and the token of the account.
const MOUNTS: [&str; 4] = [
    "/etc/hosts",
    "/etc/resolv.conf",
    "/dev/termination-log",
    "/var/run/secrets/kubernetes.io/serviceaccount/token",
];

/// Makes the calls.
pub struct Calls {
    runtime: RuntimeServiceClient<Channel>,
    /// The directory of the logs and of the file that is mounted.
    folder: PathBuf,
    made: AtomicUsize,
}

impl Calls {
    /// Makes calls to a containerd.
    ///
    /// # Errors
    /// If the files of the containers cannot be made.
    pub fn of(containerd: &Containerd) -> anyhow::Result<Self> {
        let folder = containerd.folder().join("calls");
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("mounted"), "")?;
        Ok(Self {
            runtime: RuntimeServiceClient::new(channel(&containerd.socket())),
            folder,
            made: AtomicUsize::new(0),
        })
    }

    /// Starts Pods, as many at a time as an agent does. Returns the time and their sandboxes.
    ///
    /// # Errors
    /// The first of containerd.
    pub async fn start(&self, count: usize) -> anyhow::Result<(Duration, Vec<String>)> {
        let begun = Instant::now();
        let pods = stream::iter(0..count).map(|_| self.start_one());
        let sandboxes = pods.buffer_unordered(PARALLEL).try_collect().await?;
        Ok((begun.elapsed(), sandboxes))
    }

    async fn start_one(&self) -> anyhow::Result<String> {
        let mut runtime = self.runtime.clone();
        let sandbox = self.sandbox();
        let request = RunPodSandboxRequest {
            config: Some(sandbox.clone()),
            ..RunPodSandboxRequest::default()
        };
        let ran = runtime.run_pod_sandbox(request).await;
        let id = ran.context("RunPodSandbox")?.into_inner().pod_sandbox_id;
        let request = CreateContainerRequest {
            pod_sandbox_id: id.clone(),
            config: Some(self.container()),
            sandbox_config: Some(sandbox),
        };
        let created = runtime.create_container(request).await;
        let created = created.context("CreateContainer")?.into_inner();
        let request = StartContainerRequest {
            container_id: created.container_id,
        };
        let started = runtime.start_container(request).await;
        started.context("StartContainer")?;
        Ok(id)
    }

    /// Removes sandboxes with their containers.
    ///
    /// # Errors
    /// The first of containerd.
    pub async fn remove(&self, sandboxes: Vec<String>) -> anyhow::Result<()> {
        let removed = stream::iter(sandboxes).map(|id| self.remove_one(id));
        removed.buffer_unordered(PARALLEL).try_collect().await
    }

    async fn remove_one(&self, pod_sandbox_id: String) -> anyhow::Result<()> {
        let mut runtime = self.runtime.clone();
        let request = StopPodSandboxRequest {
            pod_sandbox_id: pod_sandbox_id.clone(),
        };
        let stopped = runtime.stop_pod_sandbox(request).await;
        stopped.context("StopPodSandbox")?;
        let request = RemovePodSandboxRequest { pod_sandbox_id };
        let removed = runtime.remove_pod_sandbox(request).await;
        removed.context("RemovePodSandbox")?;
        Ok(())
    }

    /// Returns the configuration of a sandbox as an agent makes it.
    fn sandbox(&self) -> PodSandboxConfig {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("calls-{number}");
        PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: name.clone(),
                uid: name.clone(),
                namespace: "default".into(),
                attempt: 0,
            }),
            hostname: name.clone(),
            log_directory: self.folder.join(name).display().to_string(),
            linux: Some(LinuxPodSandboxConfig {
                security_context: Some(LinuxSandboxSecurityContext {
                    namespace_options: Some(namespaces()),
                    seccomp: Some(seccomp(ProfileType::RuntimeDefault)),
                    ..LinuxSandboxSecurityContext::default()
                }),
                ..LinuxPodSandboxConfig::default()
            }),
            ..PodSandboxConfig::default()
        }
    }

    fn container(&self) -> ContainerConfig {
        let mounts = MOUNTS.map(|place| Mount {
            container_path: place.into(),
            host_path: self.folder.join("mounted").display().to_string(),
            ..Mount::default()
        });
        ContainerConfig {
            metadata: Some(ContainerMetadata {
                name: "main".into(),
                attempt: 0,
            }),
            image: Some(ImageSpec {
                image: IMAGE.into(),
                ..ImageSpec::default()
            }),
            command: COMMAND.map(str::to_owned).into(),
            mounts: mounts.into(),
            log_path: "main.log".into(),
            linux: Some(LinuxContainerConfig {
                security_context: Some(LinuxContainerSecurityContext {
                    namespace_options: Some(namespaces()),
                    seccomp: Some(seccomp(ProfileType::Unconfined)),
                    ..LinuxContainerSecurityContext::default()
                }),
                ..LinuxContainerConfig::default()
            }),
            ..ContainerConfig::default()
        }
    }
}

fn namespaces() -> NamespaceOption {
    NamespaceOption {
        pid: NamespaceMode::Container.into(),
        ..NamespaceOption::default()
    }
}

fn seccomp(profile: ProfileType) -> SecurityProfile {
    SecurityProfile {
        profile_type: profile.into(),
        ..SecurityProfile::default()
    }
}

/// Returns a channel to a socket, which connects when it is used.
fn channel(socket: &Path) -> Channel {
    let socket = socket.to_owned();
    let connect = service_fn(move |_| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    // Connectors name no host, but requests must.
    Endpoint::from_static("http://localhost").connect_with_connector_lazy(connect)
}
