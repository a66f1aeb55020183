//! The change of the CAs of a local cluster while it runs. Agents that have joined follow it by themselves; other parts
//! on other machines do not, since nothing brings the keys of the new CAs there.

use std::time::Duration;

use anyhow::bail;
use tokio::time::sleep;

use crate::control_plane;
use crate::converge::restart;
use crate::launcher::{ClusterSpec, ProcessSpec, RunningProcess, Stage, StateDir, topology};

/// The time after which all processes have read their files again, which they look at once a second.
const READ_AGAIN: Duration = Duration::from_secs(4);
/// The time after which agents that have joined trust the new CA. They ask each ten seconds for what gateways have
/// published.
const READ_BY_AGENTS: Duration = Duration::from_secs(20);

/// The change of the CAs of a cluster.
pub struct Rotation<'a> {
    state_dir: &'a StateDir,
    spec: &'a ClusterSpec,
    /// The members of etcd that run: etcd reads CAs at its start only.
    etcd: Vec<ProcessSpec>,
    is_running: bool,
}

impl<'a> Rotation<'a> {
    /// Returns that of the cluster with this spec, whose processes may run.
    pub fn new(state_dir: &'a StateDir, spec: &'a ClusterSpec) -> Self {
        let processes = topology::stages(state_dir, spec).into_iter().flatten();
        let running = processes.filter(|one| RunningProcess::find(state_dir, &one.name).is_some());
        let running: Vec<_> = running.collect();
        let is_running = !running.is_empty();
        let etcd = running.into_iter().filter(|one| one.service == "etcd");
        Self {
            state_dir,
            spec,
            etcd: etcd.collect(),
            is_running,
        }
    }

    /// Makes new CAs, and lets them issue all certificates once every process trusts them. The old ones are trusted,
    /// too. Goes on where an earlier call was interrupted.
    ///
    /// # Errors
    /// If the CAs were changed before and the old ones are trusted still, other machines have parts of the control
    /// plane, a file cannot be read or written, or etcd does not get ready.
    pub async fn rotate(&self) -> anyhow::Result<()> {
        self.check_alone().await?;
        let pki = self.state_dir.pki();
        if pki.stage()? == Stage::Switched {
            bail!(
                "the CAs from before the last change are trusted still; `setpoint certs --remove-old-ca` ends that"
            );
        }
        println!("Making new CAs; all processes trust both");
        pki.prepare_authorities()?;
        self.settle().await?;
        let made = pki.switch_authorities()?;
        println!("{made} certificates were made by the new CAs");
        self.write_kubeconfig()?;
        self.read_again().await;
        println!(
            "The old CAs are trusted still. Make the kubeconfigs of users again (`setpoint kubeconfig`), then end that by \
             `setpoint certs --remove-old-ca`"
        );
        Ok(())
    }

    /// Ends the trust in the CAs from before the last change.
    ///
    /// # Errors
    /// If there are none, a file cannot be read or written, or etcd does not get ready.
    pub async fn remove_old(&self) -> anyhow::Result<()> {
        let pki = self.state_dir.pki();
        match pki.stage()? {
            Stage::Steady => {
                bail!("there is no old CA; `setpoint certs --rotate-ca` makes new ones")
            }
            Stage::Prepared => bail!(
                "the change of the CAs has not ended; `setpoint certs --rotate-ca` goes on with it"
            ),
            Stage::Switched => {}
        }
        if self.is_running
            && let Some(left) = READ_BY_AGENTS.checked_sub(pki.since_switch()?)
        {
            println!("Waiting until agents that have joined trust the new CAs");
            sleep(left).await;
        }
        pki.remove_previous_authorities()?;
        self.write_kubeconfig()?;
        self.settle().await?;
        println!("The old CAs are no longer trusted");
        Ok(())
    }

    /// Fails if other machines have parts of the control plane: they would keep the CAs with which they have joined,
    /// and refuse the others.
    async fn check_alone(&self) -> anyhow::Result<()> {
        if self.spec.network.machine().is_none() {
            return Ok(());
        }
        if !self.is_running {
            bail!(
                "the cluster does not run, and may have parts on other machines, which the change would cut off: \
                 `setpoint up` first"
            );
        }
        let elsewhere = control_plane::elsewhere(self.state_dir, self.spec).await?;
        if !elsewhere.is_empty() {
            bail!(
                "other machines have parts of the control plane, which keep the CAs that they have joined with: {}. \
                 For each machine, first `setpoint members --remove` here for its member of etcd, then `setpoint \
                 down` there, and delete `control-plane`, `pki` and `etcd` in its state directory. After the change, \
                 they join again by new tokens. Agents of nodes follow the change, and stay",
                elsewhere.join(", ")
            );
        }
        Ok(())
    }

    /// Waits until all processes trust the CAs of their files. The members of etcd are restarted, one at a time.
    async fn settle(&self) -> anyhow::Result<()> {
        for member in &self.etcd {
            println!("Restarting {}, which reads CAs at its start", member.name);
            restart(self.state_dir, member).await?;
        }
        self.read_again().await;
        Ok(())
    }

    async fn read_again(&self) {
        if self.is_running {
            sleep(READ_AGAIN).await;
        }
    }

    fn write_kubeconfig(&self) -> anyhow::Result<()> {
        match self.state_dir.kubeconfig().exists() {
            true => self.state_dir.write_kubeconfig(self.spec.gateways[0]),
            false => Ok(()),
        }
    }
}
