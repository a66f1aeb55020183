//! One round: wait until the service is at work, break a replica, wait for another to take over, heal, reckon.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use rand::RngExt;
use rand::rngs::StdRng;
use setpoint_controller::Client;
use tokio::time::{Instant, sleep, timeout};

use super::account::{late, leaderless};
use super::cluster::Cluster;
use super::fenced::Fenced;
use super::load::Load;
use super::options::Options;
use super::report::Row;
use super::witness::Witness;
use crate::leaders::{self, Standing};

/// So many writes under the term, and the service is in the middle of its work.
const WRITES: usize = 3;
/// The fault strikes at any moment of so many milliseconds.
const MOMENT: u64 = 300;
/// A service that has not written by then does not work.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a replica is broken that nobody needs to replace.
const MISSED: Duration = Duration::from_secs(3);
/// How long to watch whoever comes back: what it still wants to write, it tries at once.
const AFTERMATH: Duration = Duration::from_secs(1);

/// What a round needs.
pub struct Round<'a> {
    /// What was asked for.
    pub options: &'a Options,
    /// The way to the cluster's API.
    pub gateway: &'a Client,
    /// What is broken and healed.
    pub cluster: &'a mut Cluster,
    /// What keeps the service busy.
    pub load: &'a mut Load,
    /// Who sees what happens.
    pub witness: &'a mut Witness,
    /// Where choices come from.
    pub dice: &'a mut StdRng,
}

/// Who is broken, and what that means.
struct Target {
    name: String,
    /// The service's standing, if it elects a leader.
    standing: Option<Standing>,
    /// Others of the service that can take over.
    others: usize,
}

impl Target {
    fn leads(&self) -> bool {
        let leader = self
            .standing
            .as_ref()
            .and_then(|standing| standing.leader.as_ref());
        leader == Some(&self.name)
    }

    fn term(&self) -> u64 {
        let standing = self.standing.as_ref();
        standing.map_or(0, |standing| standing.term)
    }

    fn lease(&self) -> Duration {
        let seconds = self
            .standing
            .as_ref()
            .map(|standing| standing.lease_duration_seconds);
        Duration::from_secs(
            seconds
                .and_then(|seconds| u64::try_from(seconds).ok())
                .unwrap_or_default(),
        )
    }
}

impl Round<'_> {
    /// Plays it.
    ///
    /// # Errors
    /// The cluster did not do what it must, or cannot be broken so.
    pub async fn play(&mut self, number: u32) -> anyhow::Result<Row> {
        self.load.rest(self.witness).await?;
        self.witness.open();
        let gateways = self.cluster.gateways().await?;
        let before = Fenced::ask(&gateways).await;
        let target = {
            let Self {
                options,
                gateway,
                cluster,
                load,
                witness,
                dice,
            } = self;
            let mut scene = Scene {
                options,
                gateway,
                cluster,
                witness,
                dice,
            };
            tokio::select! {
                () = load.run() => bail!("the load ended"),
                target = scene.play() => target?,
            }
        };
        self.load.settle(self.witness).await?;
        let fenced = Fenced::ask(&gateways).await.since(&before);
        let (writes, twice) = self.witness.close();
        let leader = leader(self.gateway, &self.options.service).await?;
        Ok(Row {
            round: number,
            leaderless: leaderless(&writes, target.term()).filter(|_| target.leads()),
            successor: leader.filter(|_| target.leads()),
            target: target.name,
            fenced,
            late: late(&writes),
            twice,
            lost: self.load.lost().await?,
        })
    }
}

/// The part of a round that is played while the load runs.
struct Scene<'a> {
    options: &'a Options,
    gateway: &'a Client,
    cluster: &'a mut Cluster,
    witness: &'a Witness,
    dice: &'a mut StdRng,
}

impl Scene<'_> {
    async fn play(&mut self) -> anyhow::Result<Target> {
        self.until_at_work().await?;
        sleep(Duration::from_millis(self.dice.random_range(0..MOMENT))).await;
        let target = self.choose().await?;
        let begin = Instant::now();
        self.cluster
            .inflict(self.options.fault, &target.name)
            .await?;
        // Whoever is alone is replaced by nobody but itself.
        if target.leads() && target.others > 0 {
            self.until_taken_over(&target).await?;
        }
        let hold = self.hold(&target);
        sleep(hold.saturating_sub(begin.elapsed())).await;
        self.cluster.heal().await?;
        if target.leads() && target.others == 0 {
            self.until_taken_over(&target).await?;
        }
        sleep(AFTERMATH).await;
        Ok(target)
    }

    /// Services that elect a leader write; of the others it is not known.
    async fn until_at_work(&self) -> anyhow::Result<()> {
        let service = &self.options.service;
        if standing(self.gateway, service).await?.is_none() {
            return Ok(());
        }
        let at_work = self
            .witness
            .until(|witness| witness.writes().len() >= WRITES);
        let at_work = timeout(PATIENCE, at_work).await;
        at_work.map_err(|_| anyhow!("{service} has not begun to work within {PATIENCE:?}"))
    }

    async fn choose(&mut self) -> anyhow::Result<Target> {
        let service = &self.options.service;
        let mut replicas = self.cluster.replicas(service).await?;
        replicas.sort();
        let standing = standing(self.gateway, service).await?;
        let name = match (self.options.leader, &standing) {
            (true, None) => {
                bail!("{service} elects no leader: --random breaks any of its replicas")
            }
            (true, Some(standing)) => {
                let leader = standing.leader.clone();
                leader.with_context(|| format!("nobody leads {service}"))?
            }
            (false, _) if replicas.is_empty() => bail!("no replica of {service} runs"),
            (false, _) => replicas[self.dice.random_range(0..replicas.len())].clone(),
        };
        if !replicas.contains(&name) {
            bail!(
                "{name} leads {service}, and is none of those that run here: {}",
                replicas.join(", ")
            );
        }
        let others = replicas.len() - 1;
        Ok(Target {
            name,
            standing,
            others,
        })
    }

    async fn until_taken_over(&self, target: &Target) -> anyhow::Result<()> {
        let term = target.term();
        let later = self
            .witness
            .until(|witness| witness.writes().iter().any(|write| write.term > term));
        let patience = PATIENCE + 2 * target.lease();
        let taken = timeout(patience, later).await;
        taken.map_err(|_| anyhow!("nobody took over from {} within {patience:?}", target.name))
    }

    fn hold(&self, target: &Target) -> Duration {
        let beyond = target.lease() + Duration::from_secs(2);
        match (self.options.fault.lasts(), target.leads()) {
            (true, _) => self.options.pause.unwrap_or(beyond),
            (false, true) => Duration::ZERO,
            (false, false) => MISSED,
        }
    }
}

async fn standing(gateway: &Client, service: &str) -> anyhow::Result<Option<Standing>> {
    let standings = leaders::ask(gateway).await?;
    Ok(standings
        .into_iter()
        .find(|standing| standing.service == service))
}

async fn leader(gateway: &Client, service: &str) -> anyhow::Result<Option<String>> {
    Ok(standing(gateway, service)
        .await?
        .and_then(|standing| standing.leader))
}
