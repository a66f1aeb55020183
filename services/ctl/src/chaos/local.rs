//! Faults in a cluster of processes that `setpoint up` started.

use std::fs::File;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use nix::fcntl::Flock;
use nix::sys::signal::Signal;
use tokio::time::sleep;

use super::held::held;
use super::options::Fault;
use crate::folder::Folder;
use crate::launch;
use crate::member::{PATIENCE, Running};
use crate::port;
use crate::roster::{Member, relay, service, stages};
use crate::shape::Shape;

/// The processes of a state folder, which nobody else changes meanwhile.
pub struct Local {
    folder: Folder,
    shape: Shape,
    pending: Option<Pending>,
    _lock: Flock<File>,
}

/// What is to be undone.
enum Pending {
    Start(String),
    /// One after the other.
    Thaw(Vec<String>),
}

/// Whoever is at work has sent something to hold back after so many looks, or does not work.
const LOOKS: usize = 25;
/// How long a relay is frozen for a look, and how long it goes on after one in vain.
const CLOSED: Duration = Duration::from_millis(25);
const OPEN: Duration = Duration::from_millis(10);
/// More bytes than signs of life take: one of them at least is of a real write.
const WORTH: usize = 1000;
/// Between two that are frozen or go on: what the first holds back has arrived before the second is heard of again.
const MOMENT: Duration = Duration::from_millis(200);

impl Local {
    /// The cluster that runs from `folder`.
    pub fn open(folder: &Folder) -> anyhow::Result<Self> {
        let Some(shape) = Shape::load(folder)? else {
            bail!("no cluster runs in {}", folder.shown(folder.state()));
        };
        Ok(Self {
            folder: folder.clone(),
            shape,
            pending: None,
            _lock: folder.lock()?,
        })
    }

    /// Can this be done to a process of `service` at all?
    pub fn ensure(&self, fault: Fault, service: &str) -> anyhow::Result<()> {
        if !matches!(fault, Fault::Partition | Fault::Delay) {
            return Ok(());
        }
        if !self.shape.relays {
            bail!(
                "there are no relays to freeze between replicas and gateways: `setpoint up --relays` puts them into this \
                 cluster while it runs"
            );
        }
        let members = stages(&self.folder, &self.shape);
        let mut members = members.iter().flatten();
        let has_relay = members.any(|member| member.name == relay(&format!("{service}-0")));
        match has_relay {
            true => Ok(()),
            false => bail!(
                "this is for controllers, the scheduler and node agents: there is no relay before {service}"
            ),
        }
    }

    /// The names of a service's processes that run.
    pub fn replicas(&self, of: &str) -> Vec<String> {
        let recorded = self.folder.recorded().into_iter();
        let runs = |name: &String| Running::find(&self.folder, name).is_some();
        recorded
            .filter(|name| service(name) == of && runs(name))
            .collect()
    }

    /// Where the gateways tell their metrics.
    pub fn gateways(&self) -> Vec<SocketAddr> {
        let ports = self.shape.gateways.iter();
        ports.map(|port| ([127, 0, 0, 1], *port).into()).collect()
    }

    /// Breaks a process. What is to be undone is known before anything is done.
    pub async fn inflict(&mut self, fault: Fault, name: &str) -> anyhow::Result<()> {
        match fault {
            Fault::Kill => {
                let running = self.running(name)?;
                self.pending = Some(Pending::Start(name.to_owned()));
                running.signal(Signal::SIGKILL);
            }
            Fault::Restart => {
                let running = self.running(name)?;
                self.pending = Some(Pending::Start(name.to_owned()));
                running.stop(PATIENCE).await;
            }
            Fault::Pause => self.freeze(vec![name.to_owned()]).await?,
            // A network that has fallen silent, without a word to either side.
            Fault::Partition => self.freeze(vec![relay(name)]).await?,
            Fault::Delay => self.delay(name).await?,
        }
        Ok(())
    }

    /// Undoes what is broken, if anything is, and waits until the process is ready.
    pub async fn heal(&mut self) -> anyhow::Result<()> {
        if let Some(Pending::Thaw(names)) = &self.pending {
            // Forgotten only afterwards: an interruption may come between two.
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

    /// Holds a process's writes back in its relay as soon as there are any, and freezes it: it cannot take them back, as one
    /// would that is only cut off.
    async fn delay(&mut self, name: &str) -> anyhow::Result<()> {
        let relay = relay(name);
        let ip = self.member(&relay)?.at.context("relays have an IP")?;
        self.freeze(vec![relay.clone()]).await?;
        let passing = self.running(&relay)?;
        for _ in 0..LOOKS {
            sleep(CLOSED).await;
            if held(ip) >= WORTH {
                break;
            }
            passing.signal(Signal::SIGCONT);
            sleep(OPEN).await;
            passing.signal(Signal::SIGSTOP);
        }
        self.freeze(vec![relay, name.to_owned()]).await
    }

    /// Signals those named, with a moment between two of them; fails after the last if one did not run.
    async fn signal(&self, names: &[String], signal: Signal) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        for (position, name) in names.iter().enumerate() {
            if position > 0 {
                sleep(MOMENT).await;
            }
            let sent = self.running(name).map(|running| running.signal(signal));
            outcome = outcome.and(sent);
        }
        outcome
    }

    fn running(&self, name: &str) -> anyhow::Result<Running> {
        Running::find(&self.folder, name).with_context(|| format!("{name} does not run"))
    }

    async fn start(&self, name: &str) -> anyhow::Result<()> {
        if let Some(running) = Running::find(&self.folder, name) {
            running.gone(PATIENCE).await;
        }
        let member = self.member(name)?;
        let port = match member.port {
            Some(port) => port,
            None => port::free(1)?[0],
        };
        launch::start(&self.folder, &member, port)?.ready().await?;
        Ok(())
    }

    fn member(&self, name: &str) -> anyhow::Result<Member> {
        let members = stages(&self.folder, &self.shape);
        let mut members = members.into_iter().flatten();
        let found = members.find(|member| member.name == name);
        found.with_context(|| format!("{name} is no member of this cluster"))
    }
}
