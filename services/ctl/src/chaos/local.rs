//! Faults in a cluster of processes that `setpoint up` started.

use std::fs::File;
use std::net::SocketAddr;

use anyhow::{Context, bail};
use nix::fcntl::Flock;
use nix::sys::signal::Signal;

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
    Thaw(String),
}

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
        if fault != Fault::Partition {
            return Ok(());
        }
        if !self.shape.relays {
            bail!(
                "partition needs relays to cut, between replicas and gateways: `setpoint up --relays` puts them into this \
                 cluster while it runs"
            );
        }
        let members = stages(&self.folder, &self.shape);
        let mut members = members.iter().flatten();
        let has_relay = members.any(|member| member.name == relay(&format!("{service}-0")));
        match has_relay {
            true => Ok(()),
            false => bail!(
                "partition is for controllers, the scheduler and node agents: there is no relay before {service}"
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
            Fault::Pause => self.freeze(name.to_owned())?,
            // A network that has fallen silent, without a word to either side.
            Fault::Partition => self.freeze(relay(name))?,
        }
        Ok(())
    }

    /// Undoes what is broken, if anything is, and waits until the process is ready.
    pub async fn heal(&mut self) -> anyhow::Result<()> {
        match self.pending.take() {
            None => {}
            Some(Pending::Thaw(name)) => self.running(&name)?.signal(Signal::SIGCONT),
            Some(Pending::Start(name)) => self.start(&name).await?,
        }
        Ok(())
    }

    fn freeze(&mut self, name: String) -> anyhow::Result<()> {
        let running = self.running(&name)?;
        self.pending = Some(Pending::Thaw(name));
        running.signal(Signal::SIGSTOP);
        Ok(())
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
