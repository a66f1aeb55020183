//! Injects faults into a cluster of processes that `setpoint up` started.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, bail};
use nix::fcntl::Flock;
use nix::sys::signal::Signal;
use tokio::time::sleep;

use super::fenced::Gateways;
use super::options::Fault;
use super::relay_backlog::backlog;
use crate::launcher::topology::{relay_name, service_of, stages};
use crate::launcher::{
    self, ClusterSpec, Pki, ProcessSpec, RunningProcess, STOP_TIMEOUT, StateDir, port,
};

/// The processes of a state directory; its lock keeps other commands from changing them.
pub struct Local {
    state_dir: StateDir,
    spec: ClusterSpec,
    pending: Option<Pending>,
    _lock: Flock<File>,
}

/// The way to undo the current fault.
enum Pending {
    Start(String),
    /// Continue these processes, in this order.
    Thaw(Vec<String>),
}

/// Number of checks for a backlog, after which the process counts as idle.
const MAX_CHECKS: usize = 25;
/// The times that the relay is frozen before a check, and continues after one without a backlog.
const FROZEN: Duration = Duration::from_millis(25);
const THAWED: Duration = Duration::from_millis(10);
/// Backlog in bytes that contains at least one write: lease renewals and pings take less.
const MIN_BACKLOG: usize = 1000;
/// Delay between signals to a relay and its client, so that the relay's backlog arrives before the client continues.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(200);

impl Local {
    /// Opens and locks the cluster of `state_dir`.
    pub fn open(state_dir: &StateDir) -> anyhow::Result<Self> {
        let Some(spec) = ClusterSpec::load(state_dir)? else {
            bail!("no cluster runs in {}", state_dir.shown(state_dir.state()));
        };
        Ok(Self {
            state_dir: state_dir.clone(),
            spec,
            pending: None,
            _lock: state_dir.lock()?,
        })
    }

    /// Fails if the fault cannot be injected into processes of `service`.
    pub fn check_supported(&self, fault: Fault, service: &str) -> anyhow::Result<()> {
        if !matches!(fault, Fault::Partition | Fault::Delay) {
            return Ok(());
        }
        if !self.spec.relays {
            bail!(
                "this fault needs relays between replicas and gateways: `setpoint up --relays` adds them to the running \
                 cluster"
            );
        }
        let processes = stages(&self.state_dir, &self.spec);
        let mut processes = processes.iter().flatten();
        let has_relay =
            processes.any(|process| process.name == relay_name(&format!("{service}-0")));
        match has_relay {
            true => Ok(()),
            false => bail!(
                "{service} has no relay: this fault is for controllers, the scheduler and node agents"
            ),
        }
    }

    /// Returns the names of the running processes of a service.
    pub fn replicas(&self, of: &str) -> Vec<String> {
        let recorded = self.state_dir.recorded().into_iter();
        let runs = |name: &String| RunningProcess::find(&self.state_dir, name).is_some();
        recorded
            .filter(|name| service_of(name) == of && runs(name))
            .collect()
    }

    /// Returns the gateways.
    pub fn gateways(&self) -> anyhow::Result<Gateways> {
        let ports = self.spec.gateways.iter();
        let addresses = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, *port)));
        Ok(Gateways {
            addresses: addresses.collect(),
            credentials: Pki::credentials(&self.state_dir.pki().administrator())?,
        })
    }

    /// Injects a fault into a process. Records how to undo it first, so that an interruption leaves nothing broken.
    pub async fn inject(&mut self, fault: Fault, name: &str) -> anyhow::Result<()> {
        match fault {
            Fault::Kill => {
                let running = self.running(name)?;
                self.pending = Some(Pending::Start(name.to_owned()));
                running.signal(Signal::SIGKILL);
            }
            Fault::Restart => {
                let running = self.running(name)?;
                self.pending = Some(Pending::Start(name.to_owned()));
                running.stop(STOP_TIMEOUT).await;
            }
            Fault::Pause => self.freeze(vec![name.to_owned()]).await?,
            // Traffic stops without an error to either side, as in a network partition.
            Fault::Partition => self.freeze(vec![relay_name(name)]).await?,
            Fault::Delay => self.delay(name).await?,
        }
        Ok(())
    }

    /// Undoes the current fault, if there is one. Waits until a restarted process is ready.
    pub async fn heal(&mut self) -> anyhow::Result<()> {
        if let Some(Pending::Thaw(names)) = &self.pending {
            // `pending` is cleared afterwards, because an interruption may come between two signals.
            self.signal(names, Signal::SIGCONT).await?;
        }
        if let Some(Pending::Start(name)) = self.pending.take() {
            self.start(&name).await?;
        }
        Ok(())
    }

    async fn freeze(&mut self, names: Vec<String>) -> anyhow::Result<()> {
        self.pending = Some(Pending::Thaw(names.clone()));
        self.signal(&names, Signal::SIGSTOP).await
    }

    /// Freezes the relay of a process when it holds back writes, then the process itself. A process that runs on would
    /// cancel its unanswered writes.
    async fn delay(&mut self, name: &str) -> anyhow::Result<()> {
        let relay = relay_name(name);
        let ip = self
            .spec_of(&relay)?
            .relay_ip
            .context("relays have an IP")?;
        self.freeze(vec![relay.clone()]).await?;
        let running_relay = self.running(&relay)?;
        for _ in 0..MAX_CHECKS {
            sleep(FROZEN).await;
            if backlog(ip) >= MIN_BACKLOG {
                break;
            }
            running_relay.signal(Signal::SIGCONT);
            sleep(THAWED).await;
            running_relay.signal(Signal::SIGSTOP);
        }
        self.freeze(vec![relay, name.to_owned()]).await
    }

    /// Signals the named processes with [`SIGNAL_INTERVAL`] in between. All are signalled even if one does not run.
    async fn signal(&self, names: &[String], signal: Signal) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        for (position, name) in names.iter().enumerate() {
            if position > 0 {
                sleep(SIGNAL_INTERVAL).await;
            }
            let sent = self.running(name).map(|running| running.signal(signal));
            outcome = outcome.and(sent);
        }
        outcome
    }

    fn running(&self, name: &str) -> anyhow::Result<RunningProcess> {
        RunningProcess::find(&self.state_dir, name)
            .with_context(|| format!("{name} is not running"))
    }

    async fn start(&self, name: &str) -> anyhow::Result<()> {
        if let Some(running) = RunningProcess::find(&self.state_dir, name) {
            running.wait_for_exit(STOP_TIMEOUT).await;
        }
        let process = self.spec_of(name)?;
        let port = match process.port {
            Some(port) => port,
            None => port::free(1)?[0],
        };
        launcher::start(&self.state_dir, &process, port)?
            .ready()
            .await?;
        Ok(())
    }

    fn spec_of(&self, name: &str) -> anyhow::Result<ProcessSpec> {
        let processes = stages(&self.state_dir, &self.spec);
        let mut processes = processes.into_iter().flatten();
        let found = processes.find(|process| process.name == name);
        found.with_context(|| format!("{name} is not a process of this cluster"))
    }
}
