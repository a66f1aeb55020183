//! The course of a soak: start, actions and faults, rest, checks.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use setpoint_tests::{Cluster, Size, fast_election};
use tokio::task::{JoinHandle, block_in_place};
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::Options;
use crate::api::Api;
use crate::cache;
use crate::check;
use crate::faults::Faults;
use crate::history::History;
use crate::memory::Memory;
use crate::report::Report;
use crate::snapshot::Snapshot;
use crate::user::User;

const MANAGER: &str = "controller-manager";
/// The controllers that have no service of their own.
const MANAGED: [&str; 2] = ["--controllers", "*,-deployment,-replicaset"];
/// Number of nodes of a DaemonSet.
const SLICE: usize = 10;
const STEP: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_secs(2);
/// Number of samples of a run.
const SAMPLES: u32 = 240;
/// Number of log lines of a process that are reported.
const MOST: usize = 40;

/// What the user has done.
struct Done {
    user: User,
    actions: BTreeMap<String, u64>,
    problems: Vec<String>,
}

/// A cluster that is soaked, and what observes it.
struct Soak {
    cluster: Cluster,
    processes: Vec<String>,
    faults: Faults,
    history: History,
    memory: Memory,
    problems: Vec<String>,
}

/// Runs a soak.
///
/// # Errors
/// The cluster cannot be prepared or read.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    let seed = options.seed.unwrap_or_else(now);
    let total = Duration::from_secs(options.seconds);
    eprintln!("  seed {seed}");
    let mut soak = block_in_place(|| Soak::start(options, seed));
    let api = Api::new(&soak.cluster.gateway_urls());
    let nodes = nodes(options.nodes);
    let slices = (options.nodes / SLICE).max(1);
    api.prepare(&nodes, slices).await?;
    let user = User::new(seed, options.nodes, slices);
    let acting = act(api.clone(), user, nodes.clone(), options.rate, total);
    soak.watch(&acting, total, options.fault_interval > 0.0)
        .await;
    let mut done = acting.await.context("the user does not panic")?;
    block_in_place(|| soak.faults.end(&mut soak.cluster));
    wind_down(&api, &mut done, &nodes).await;
    let (settled, snapshot) = soak.settle(&api, &done.user, options.settle).await;
    block_in_place(|| soak.finish(options));
    let etcd = soak.cluster.etcd_url();
    soak.problems
        .extend(cache::differences(api.gateways(), &etcd).await?);
    let processes = soak.memory.figures(total);
    soak.problems.extend(Memory::problems(&processes, total));
    soak.problems.extend(done.problems);
    Ok(Report {
        seed,
        seconds: options.seconds,
        nodes: options.nodes,
        actions: done.actions,
        faults: std::mem::take(&mut soak.faults.count),
        objects: snapshot.counts(),
        revisions: soak.history.writes,
        settled: settled.map(|settled| settled.as_secs_f64()),
        processes,
        problems: std::mem::take(&mut soak.problems),
    })
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// The nodes of two agents, in turn.
fn nodes(count: usize) -> Vec<String> {
    (0..count)
        .map(|n| format!("node-{}-{}", n % 2, n / 2))
        .collect()
}

/// Acts at a rate for a time.
fn act(
    api: Api,
    mut user: User,
    nodes: Vec<String>,
    rate: f64,
    total: Duration,
) -> JoinHandle<Done> {
    tokio::spawn(async move {
        let mut ticks = interval(Duration::from_secs_f64(1.0 / rate));
        // Actions that a fault has delayed are not made up for at once.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = Instant::now() + total;
        let (mut actions, mut problems) = (BTreeMap::new(), Vec::new());
        while Instant::now() < end {
            ticks.tick().await;
            let action = user.next();
            *actions.entry(action.name()).or_default() += 1;
            if let Err(error) = api.act(&action, &nodes).await {
                eprintln!("  {}: {error:#}", action.name());
                problems.push(format!("{}: {error:#}", action.name()));
            }
        }
        Done {
            user,
            actions,
            problems,
        }
    })
}

async fn wind_down(api: &Api, done: &mut Done, nodes: &[String]) {
    for action in done.user.wind_down() {
        if let Err(error) = api.act(&action, nodes).await {
            done.problems.push(format!("{}: {error:#}", action.name()));
        }
    }
}

impl Soak {
    /// Starts the cluster, with half of the nodes at each of two agents.
    fn start(options: &Options, seed: u64) -> Self {
        let mut cluster = Cluster::without_etcd();
        // Compares caches often: the soak would be over before the default interval has passed twice.
        // Events live for an hour by default, in which their memory would grow.
        cluster.set_gateway_flags(&["--cache-check", "30s", "--event-ttl", "2m"]);
        let size = Size {
            gateways: options.gateways,
            replicas: options.replicas,
            process_nodes: 0,
            simulated_nodes: options.nodes.div_ceil(2),
        };
        let mut cluster = cluster.fill(size, &fast_election());
        let flags = [fast_election(), MANAGED.map(str::to_owned).into()].concat();
        (0..options.replicas).for_each(|n| cluster.service(MANAGER, n, &flags));
        let agent =
            ["--runtime", "simulated", "--node-name", "node-1", "--nodes"].map(str::to_owned);
        let nodes = [(options.nodes / 2).to_string()];
        cluster.service("node-agent", 1, &[&agent[..], &nodes[..]].concat());
        let history = History::of(&cluster.etcd_url());
        let processes = cluster.process_names();
        Self {
            faults: Faults::new(
                seed,
                processes.clone(),
                Duration::from_secs_f64(options.fault_interval),
            ),
            cluster,
            processes,
            history,
            memory: Memory::default(),
            problems: Vec::new(),
        }
    }

    /// Breaks and observes the cluster until the user has finished. After a fifth of the time, the first replicas are
    /// not killed any more, so that they run from one quarter to the end, and their memory can be compared.
    async fn watch(&mut self, acting: &JoinHandle<Done>, total: Duration, faults: bool) {
        let start = Instant::now();
        let mut sampled = start;
        while !acting.is_finished() {
            let elapsed = start.elapsed();
            block_in_place(|| {
                if faults && elapsed < total {
                    self.faults.step(&mut self.cluster, elapsed > total / 5);
                }
                self.history.step();
            });
            if sampled <= Instant::now() {
                self.sample(elapsed);
                sampled = Instant::now() + (total / SAMPLES).max(Duration::from_millis(500));
            }
            sleep(STEP).await;
        }
    }

    fn sample(&mut self, at: Duration) {
        for name in &self.processes {
            self.memory
                .sample(name, self.cluster.process(name).pid(), at);
        }
    }

    /// Waits until all conditions are met. Returns the time this took, and the objects at the end.
    async fn settle(
        &mut self,
        api: &Api,
        user: &User,
        seconds: u64,
    ) -> (Option<Duration>, Snapshot) {
        let start = Instant::now();
        loop {
            let read = Snapshot::read(api).await;
            block_in_place(|| self.history.step());
            let problems = match &read {
                Ok(snapshot) => check::problems(&user.declared, snapshot),
                Err(error) => vec![format!("{error:#}")],
            };
            if problems.is_empty() {
                return (Some(start.elapsed()), read.unwrap_or_default());
            }
            eprintln!(
                "  {} conditions are not met, for example {}",
                problems.len(),
                problems[0]
            );
            if start.elapsed() > Duration::from_secs(seconds) {
                self.problems.extend(problems);
                return (None, read.unwrap_or_default());
            }
            sleep(POLL).await;
        }
    }

    /// Collects what the history, the faults and the logs say.
    fn finish(&mut self, options: &Options) {
        self.history.finish();
        self.problems.append(&mut self.history.problems);
        self.problems.append(&mut self.faults.problems);
        for name in self.processes.clone() {
            if !self.cluster.process(&name).is_running() {
                self.problems.push(format!("{name} has ended by itself"));
            }
            let log = self.cluster.log(&name);
            let bad = log.lines().filter(|line| is_defect(line)).take(MOST);
            self.problems
                .extend(bad.map(|line| format!("{name}: {line}")));
            if let Some(directory) = &options.logs {
                let kept = std::fs::create_dir_all(directory)
                    .and_then(|()| std::fs::write(directory.join(format!("{name}.log")), log));
                if let Err(error) = kept {
                    eprintln!("  the log of {name} is not kept: {error}");
                }
            }
        }
    }
}

/// Returns whether a log line reports a defect, whatever the faults were.
fn is_defect(line: &str) -> bool {
    line.contains("panicked at") || line.contains("the cache differs from its store")
}
