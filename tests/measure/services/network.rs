//! The networks of the measurement.
//!
//! ```text
//! machine: Service range, 10.1.0.1 ── 10.1.0.2 Pod
//! ```

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context as _, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::plane::{Backend, SERVICE_RANGE};
use crate::report::Report;

/// Says that this process is in a network of its own.
const INSIDE: &str = "SETPOINT_BENCH_NETWORK";
const PATIENCE: Duration = Duration::from_secs(5);
/// The address of the Pod.
pub const POD: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

/// Returns whether this process is in a network of its own.
pub fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Measures in a process with a network of its own, which ends with it.
pub fn run_inside(report: &mut Report, seconds: f64) -> anyhow::Result<()> {
    let trial = Command::new("unshare")
        .args(["--net", "nft", "list", "tables"])
        .output();
    if !trial.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: Services were NOT measured: that takes root, ip and nft");
        return Ok(());
    }
    let output = tempfile::NamedTempFile::new()?;
    let status = Command::new("unshare")
        .arg("--net")
        .arg(env::current_exe()?)
        .args(["services", &format!("--seconds={seconds}"), "--output"])
        .arg(output.path())
        .env(INSIDE, "yes")
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "the measurement fails: {status}");
    let inner: Report = serde_json::from_slice(&std::fs::read(output.path())?)?;
    report.figures.extend(inner.figures);
    Ok(())
}

/// The network of the Pod. It ends with this process, or when it is dropped.
pub struct Network {
    /// A process in the network; `None` if the Pod is on the loopback.
    holder: Option<Child>,
}

impl Network {
    /// Makes the network for a back end.
    pub fn new(backend: Backend) -> anyhow::Result<Self> {
        ip("link set lo up")?;
        if backend == Backend::Userspace {
            ip(&format!("route add local {SERVICE_RANGE} dev lo"))?;
            ip(&format!("route add local {POD} dev lo"))?;
            return Ok(Self { holder: None });
        }
        // It reads from this process until that ends.
        let mut holder = Command::new("unshare");
        let holder = holder.args(["--net", "cat"]).stdin(Stdio::piped());
        let holder = holder.stdout(Stdio::null()).spawn()?;
        let (name, network) = (holder.id(), Self::of(holder)?);
        ip(&format!(
            "link add pod type veth peer name eth0 netns {name}"
        ))?;
        ip("addr add 10.1.0.1/24 dev pod")?;
        ip("link set pod up")?;
        let address = format!("addr add {POD}/24 dev eth0");
        let lines = ["link set lo up", &address, "link set eth0 up"];
        let mut lines = lines.into_iter().chain(["route add default via 10.1.0.1"]);
        network.enter(|| lines.try_for_each(ip))?;
        // Without a route, packets to a Service are not sent, so that no rule sees them.
        ip(&format!("route add {SERVICE_RANGE} via {POD}"))?;
        Ok(network)
    }

    /// Waits until a process has its network.
    fn of(holder: Child) -> anyhow::Result<Self> {
        let file = |id: &str| fs::read_link(format!("/proc/{id}/ns/net"));
        let (own, other) = (file("self")?, holder.id().to_string());
        let end = Instant::now() + PATIENCE;
        let network = Self {
            holder: Some(holder),
        };
        while file(&other)? == own {
            ensure!(Instant::now() < end, "unshare makes no network");
            thread::sleep(Duration::from_millis(1));
        }
        Ok(network)
    }

    /// Calls a function in a thread of the Pod's network. Sockets that it opens stay there, and so do its programs.
    pub fn enter<T: Send>(
        &self,
        work: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<T> {
        let Some(holder) = &self.holder else {
            return work();
        };
        let file = File::open(format!("/proc/{}/ns/net", holder.id()))?;
        let inside = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            work()
        };
        thread::scope(|scope| scope.spawn(inside).join().expect("it does not panic"))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let Some(holder) = &mut self.holder else {
            return;
        };
        // The other side and the routes go with the link.
        if let Err(error) = ip("link del pod") {
            eprintln!("{error:#}");
        }
        let _ = (holder.kill(), holder.wait());
    }
}

fn ip(line: &str) -> anyhow::Result<()> {
    let output = Command::new("ip")
        .args(line.split(' '))
        .output()
        .context("ip")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {line}: {error}");
    Ok(())
}
