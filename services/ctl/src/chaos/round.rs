//! One round: waits until the service writes, injects a fault, waits for the takeover, undoes the fault, and counts.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use rand::RngExt;
use rand::rngs::StdRng;
use setpoint_controller::Client;
use tokio::time::{Instant, sleep, timeout};

use super::cluster::Cluster;
use super::fenced::Fenced;
use super::load::Load;
use super::observer::Observer;
use super::options::Options;
use super::report::Row;
use super::report_data::{late_writes, leaderless_time};
use crate::leaders::{self, Leadership};

/// Number of writes after which the service counts as busy.
const MIN_WRITES: usize = 3;
/// Maximum of the random delay before the fault, in milliseconds.
const MAX_DELAY_MS: u64 = 300;
/// Time for the service to start writing, and for a takeover in addition to two lease durations.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(30);
/// The time that a replica without the lead stays down.
const NON_LEADER_OUTAGE: Duration = Duration::from_secs(3);
/// The time for which a recovered replica is observed: a former leader sends its late writes at once.
const OBSERVATION_TIME: Duration = Duration::from_secs(1);

/// The inputs of a round.
pub struct Round<'a> {
    /// The options of the command.
    pub options: &'a Options,
    /// A client of the cluster.
    pub gateway: &'a Client,
    /// The cluster to inject the fault into.
    pub cluster: &'a mut Cluster,
    /// The load that keeps the service busy.
    pub load: &'a mut Load,
    /// Records the writes of the service and the changes of Pods.
    pub observer: &'a mut Observer,
    /// Source of random choices.
    pub rng: &'a mut StdRng,
}

/// The replica to break.
struct Target {
    name: String,
    /// The leadership of its service, if it elects a leader.
    leadership: Option<Leadership>,
    /// Number of other replicas that can take over.
    others: usize,
}

impl Target {
    fn leads(&self) -> bool {
        let leader = self
            .leadership
            .as_ref()
            .and_then(|leadership| leadership.leader.as_ref());
        leader == Some(&self.name)
    }

    fn term(&self) -> u64 {
        let leadership = self.leadership.as_ref();
        leadership.map_or(0, |leadership| leadership.term)
    }

    fn lease(&self) -> Duration {
        let seconds = self
            .leadership
            .as_ref()
            .map(|leadership| leadership.lease_duration_seconds);
        Duration::from_secs(
            seconds
                .and_then(|seconds| u64::try_from(seconds).ok())
                .unwrap_or_default(),
        )
    }
}

impl Round<'_> {
    /// Runs the round and returns its effects.
    ///
    /// # Errors
    /// The service did not work, no replica took over, the load did not settle, or the fault cannot be injected.
    pub async fn run(&mut self, number: u32) -> anyhow::Result<Row> {
        self.load.reset(self.observer).await?;
        self.observer.begin_round();
        let gateways = self.cluster.gateways().await?;
        let before = Fenced::fetch(&gateways).await;
        let target = {
            let Self {
                options,
                gateway,
                cluster,
                load,
                observer,
                rng,
            } = self;
            let mut phase = FaultPhase {
                options,
                gateway,
                cluster,
                observer,
                rng,
            };
            tokio::select! {
                () = load.run() => bail!("the load ended"),
                target = phase.run() => target?,
            }
        };
        self.load.settle(self.observer).await?;
        let fenced = Fenced::fetch(&gateways).await.since(&before);
        let (writes, extra) = self.observer.end_round();
        let leader = leader(self.gateway, &self.options.service).await?;
        Ok(Row {
            round: number,
            leaderless: leaderless_time(&writes, target.term()).filter(|_| target.leads()),
            successor: leader.filter(|_| target.leads()),
            target: target.name,
            fenced,
            late: late_writes(&writes),
            extra,
            lost: self.load.lost().await?,
        })
    }
}

/// The part of a round during which the load runs.
struct FaultPhase<'a> {
    options: &'a Options,
    gateway: &'a Client,
    cluster: &'a mut Cluster,
    observer: &'a Observer,
    rng: &'a mut StdRng,
}

impl FaultPhase<'_> {
    async fn run(&mut self) -> anyhow::Result<Target> {
        self.until_writing().await?;
        sleep(Duration::from_millis(
            self.rng.random_range(0..MAX_DELAY_MS),
        ))
        .await;
        let target = self.choose().await?;
        let begin = Instant::now();
        self.cluster
            .inject(self.options.fault, &target.name)
            .await?;
        // A single replica can only take over from itself, after it has recovered.
        if target.leads() && target.others > 0 {
            self.until_taken_over(&target).await?;
        }
        let outage = self.outage(&target);
        sleep(outage.saturating_sub(begin.elapsed())).await;
        self.cluster.heal().await?;
        if target.leads() && target.others == 0 {
            self.until_taken_over(&target).await?;
        }
        sleep(OBSERVATION_TIME).await;
        Ok(target)
    }

    /// Waits until the service has written. Only writes of services that elect a leader are observed.
    async fn until_writing(&self) -> anyhow::Result<()> {
        let service = &self.options.service;
        if leadership(self.gateway, service).await?.is_none() {
            return Ok(());
        }
        let writing = self
            .observer
            .until(|observer| observer.writes().len() >= MIN_WRITES);
        let writing = timeout(TAKEOVER_TIMEOUT, writing).await;
        writing.map_err(|_| anyhow!("{service} has not written within {TAKEOVER_TIMEOUT:?}"))
    }

    async fn choose(&mut self) -> anyhow::Result<Target> {
        let service = &self.options.service;
        let mut replicas = self.cluster.replicas(service).await?;
        replicas.sort();
        let leadership = leadership(self.gateway, service).await?;
        let name = match (self.options.leader, &leadership) {
            (true, None) => {
                bail!("{service} elects no leader; use --random to break one of its replicas")
            }
            (true, Some(leadership)) => {
                let leader = leadership.leader.clone();
                leader.with_context(|| format!("{service} has no leader"))?
            }
            (false, _) if replicas.is_empty() => bail!("no replica of {service} runs"),
            (false, _) => replicas[self.rng.random_range(0..replicas.len())].clone(),
        };
        if !replicas.contains(&name) {
            bail!(
                "the leader of {service} is {name}, which is not one of the replicas that run here: {}",
                replicas.join(", ")
            );
        }
        let others = replicas.len() - 1;
        Ok(Target {
            name,
            leadership,
            others,
        })
    }

    async fn until_taken_over(&self, target: &Target) -> anyhow::Result<()> {
        let term = target.term();
        let later = self
            .observer
            .until(|observer| observer.writes().iter().any(|write| write.term > term));
        let limit = TAKEOVER_TIMEOUT + 2 * target.lease();
        let taken = timeout(limit, later).await;
        taken.map_err(|_| anyhow!("no replica took over from {} within {limit:?}", target.name))
    }

    fn outage(&self, target: &Target) -> Duration {
        let beyond = target.lease() + Duration::from_secs(2);
        match (self.options.fault.has_duration(), target.leads()) {
            (true, _) => self.options.pause.unwrap_or(beyond),
            (false, true) => Duration::ZERO,
            (false, false) => NON_LEADER_OUTAGE,
        }
    }
}

async fn leadership(gateway: &Client, service: &str) -> anyhow::Result<Option<Leadership>> {
    let leaderships = leaders::fetch(gateway).await?;
    Ok(leaderships
        .into_iter()
        .find(|leadership| leadership.service == service))
}

async fn leader(gateway: &Client, service: &str) -> anyhow::Result<Option<String>> {
    Ok(leadership(gateway, service)
        .await?
        .and_then(|leadership| leadership.leader))
}
