//! Fixtures for the cri runtime: a containerd of each test. Tests are skipped with a message where none can run.
//!
//! `SETPOINT_TEST_CRI_ENDPOINT` names the socket of another runtime, for example of CRI-O, that has the test image and
//! that tests of a [`fixture`], thus the contract, use instead.

use std::env;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use setpoint_runtime::Runtime as _;
use setpoint_runtime::contract::{Fixture, IMAGE, POLL_INTERVAL, TIMEOUT, Woken, sandbox, uid};
use setpoint_runtime::cri::{Cri, Features, Service, Settings, sweep};
use setpoint_testkit::{ImageRegistry, REGISTRY_USER, busybox_image};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};

const ENDPOINT: &str = "SETPOINT_TEST_CRI_ENDPOINT";

/// A containerd with the test image, which ends when dropped, with all that it runs.
pub struct Containerd(setpoint_testkit::Containerd);

impl Containerd {
    /// Starts one; `None` if it cannot run here.
    pub fn start() -> Option<Self> {
        setpoint_testkit::Containerd::start(IMAGE).map(Self::with_image)
    }

    /// As [`Self::start`], with a disk of this size in MiB.
    pub fn start_on(mebibytes: u32) -> Option<Self> {
        setpoint_testkit::Containerd::start_on(IMAGE, mebibytes).map(Self::with_image)
    }

    fn with_image(containerd: setpoint_testkit::Containerd) -> Self {
        containerd.import(&busybox_image(IMAGE, ""));
        Self(containerd)
    }

    /// Returns the settings of a runtime on it.
    pub fn settings(&self) -> Settings {
        settings(self.endpoint(), self.folder())
    }

    /// Returns what it reports that it can do.
    pub async fn features(&self) -> Features {
        let service = Service::connect(&self.settings()).await;
        service.unwrap().features
    }

    /// Returns the directory of the files of an agent.
    pub fn state(&self) -> PathBuf {
        state(self.folder())
    }
}

fn settings(endpoint: String, folder: &Path) -> Settings {
    Settings {
        endpoint,
        pod_logs_dir: folder.join("logs"),
        seccomp_profile_root: folder.join("seccomp"),
        relist_period: Duration::from_millis(50),
        ..Settings::default()
    }
}

fn state(folder: &Path) -> PathBuf {
    folder.join("agent")
}

impl Deref for Containerd {
    type Target = setpoint_testkit::Containerd;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Containerd {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        remove_all(self.settings());
    }
}

/// A runtime that goes on after the test.
struct Other {
    endpoint: String,
    folder: TempDir,
}

impl Drop for Other {
    fn drop(&mut self) {
        remove_all(settings(self.endpoint.clone(), self.folder.path()));
    }
}

/// Removes what the node of this test has on a runtime.
fn remove_all(settings: Settings) {
    let node = uid();
    let swept = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _ = runtime.block_on(sweep(&settings, &node));
    });
    let _ = swept.join();
}

/// Opens a runtime on a containerd, for the node of this test.
pub async fn open(containerd: &Containerd, woken: &Woken) -> Cri {
    open_with(containerd, woken, |_| {}).await
}

/// Opens a runtime on a containerd, after a change of what is known about that.
pub async fn open_with(
    containerd: &Containerd,
    woken: &Woken,
    change: impl FnOnce(&mut Service),
) -> Cri {
    open_at(&containerd.settings(), &containerd.state(), woken, change).await
}

async fn open_at(
    settings: &Settings,
    state: &Path,
    woken: &Woken,
    change: impl FnOnce(&mut Service),
) -> Cri {
    let mut service = Service::connect(settings).await.unwrap();
    change(&mut service);
    let runtime = Cri::open(service, settings, &uid(), state, woken.wake(), |_| {}).await;
    let runtime = runtime.unwrap();
    let ready = async {
        while runtime.images().await.is_empty() || runtime.network_ready().is_err() {
            sleep(POLL_INTERVAL).await;
        }
    };
    timeout(TIMEOUT, ready).await.expect("the runtime is ready");
    runtime
}

pub async fn fixture() -> Option<Fixture<Cri>> {
    match env::var(ENDPOINT) {
        Ok(endpoint) => Some(fixture_on(endpoint).await),
        Err(_) => Some(fixture_of(Containerd::start()?).await),
    }
}

async fn fixture_on(endpoint: String) -> Fixture<Cri> {
    let other = Other {
        folder: tempfile::tempdir().unwrap(),
        endpoint,
    };
    let folder = other.folder.path();
    let (settings, woken) = (settings(other.endpoint.clone(), folder), Woken::default());
    let runtime = open_at(&settings, &state(folder), &woken, |_| {}).await;
    Fixture::new(runtime, crate::MACHINE, woken, other)
}

/// Returns a runtime on a containerd.
pub async fn fixture_of(containerd: Containerd) -> Fixture<Cri> {
    let woken = Woken::default();
    let runtime = open(&containerd, &woken).await;
    Fixture::new(runtime, crate::MACHINE, woken, containerd)
}

/// A runtime with a Pod, and an image in a registry of this machine that it has not pulled yet.
pub struct WithRegistry {
    pub runtime: Cri,
    /// The name of the image.
    pub image: String,
    pub containerd: Containerd,
    pub registry: ImageRegistry,
}

impl WithRegistry {
    /// Pushes an image of this name to the registry; `None` if that or the containerd cannot run here.
    pub async fn start(
        registry: Option<ImageRegistry>,
        containerd: impl FnOnce() -> Option<Containerd>,
        image: &str,
    ) -> Option<Self> {
        let (registry, containerd) = (registry?, containerd()?);
        let image = format!("{}:1", registry.name(image));
        containerd.push(&image, REGISTRY_USER);
        let runtime = open(&containerd, &Woken::default()).await;
        runtime.run_sandbox(sandbox()).await.unwrap();
        Some(Self {
            runtime,
            image,
            containerd,
            registry,
        })
    }
}
