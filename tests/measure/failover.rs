//! Measures the gap after a leader was stopped or killed: from its last accepted write to its successor's first.

use std::time::Duration;

use nix::sys::signal::Signal;
use setpoint_proto::apps::{ReplicaSet, ReplicaSetSpec};
use setpoint_tests::{
    Cluster, EtcdLog, Handover, LeadershipTerm, client, eventually, fast_election,
};
use tokio::task::{JoinHandle, block_in_place};
use tokio::time::interval;

use crate::app;
use crate::report::Report;

const SERVICE: &str = "replicaset-controller";
/// Interval of the load: a new set of one Pod each, so that the leader always has something to write.
const LOAD: Duration = Duration::from_millis(10);

struct Plan {
    profile: &'static str,
    flags: Vec<String>,
    stop: Signal,
    rounds: usize,
}

/// Measures both profiles, with stopped and with killed leaders.
pub async fn measure(report: &mut Report) -> anyhow::Result<()> {
    let fast = fast_election;
    let plans = [
        ("fast", fast(), Signal::SIGTERM, 7),
        ("standard", Vec::new(), Signal::SIGTERM, 7),
        ("fast", fast(), Signal::SIGKILL, 7),
        ("standard", Vec::new(), Signal::SIGKILL, 3),
    ];
    for (profile, flags, stop, rounds) in plans {
        let plan = Plan {
            profile,
            flags,
            stop,
            rounds,
        };
        add_handovers(report, &plan, replace_leaders(&plan).await?);
    }
    Ok(())
}

async fn replace_leaders(plan: &Plan) -> anyhow::Result<Vec<Handover>> {
    let mut cluster = block_in_place(Cluster::bare);
    for n in 0..2 {
        cluster.service(SERVICE, n, &plan.flags);
    }
    let history = EtcdLog::of(&cluster.etcd_url());
    let load = load(&cluster)?;
    block_in_place(|| {
        for _ in 0..plan.rounds {
            until_it_works(&history);
            let leader = cluster.leader(SERVICE);
            match plan.stop {
                Signal::SIGTERM => _ = cluster.process(&leader).stop(),
                _ => cluster.process(&leader).kill(),
            }
            eventually("another leads", || {
                let now = cluster.leader(SERVICE);
                (now != leader).then_some(()).ok_or(now)
            });
            until_it_works(&history);
            restart_replica(&mut cluster, &leader);
        }
    });
    load.abort();
    let terms = block_in_place(|| LeadershipTerm::all(&history.all(), SERVICE));
    anyhow::ensure!(terms.len() > plan.rounds, "{terms:?}");
    let pairs = terms.windows(2);
    Ok(pairs.map(|pair| pair[0].handover(&pair[1])).collect())
}

/// Creates sets continuously in the background.
fn load(cluster: &Cluster) -> anyhow::Result<JoinHandle<()>> {
    let gateway = client(&cluster.gateway_url());
    Ok(tokio::spawn(async move {
        let mut ticks = interval(LOAD);
        for n in 0_u64.. {
            ticks.tick().await;
            // Failed creates are not repeated: the next tick creates another set.
            let _ = gateway.create(&set(&format!("load-{n}"))).await;
        }
    }))
}

/// Waits until the current leader writes.
fn until_it_works(history: &EtcdLog) {
    let writes = || {
        let terms = LeadershipTerm::all(&history.so_far(), SERVICE);
        terms.last().and_then(|term| term.writes)
    };
    let before = writes();
    eventually("the leader writes", || {
        let now = writes();
        (now.is_some() && now != before)
            .then_some(())
            .ok_or(format!("{now:?}"))
    });
}

/// Restarts a replica, and waits for its heartbeat.
fn restart_replica(cluster: &mut Cluster, replica: &str) {
    let kubectl = cluster.kubectl();
    let renewed = || {
        let asked =
            format!("get lease {replica} -n setpoint-replicas -o jsonpath={{.spec.renewTime}}");
        kubectl.run(&asked).stdout
    };
    let before = renewed();
    cluster.process(replica).restart();
    eventually("the other one stands by", || {
        let now = renewed();
        (!now.is_empty() && now != before).then_some(()).ok_or(now)
    });
}

fn add_handovers(report: &mut Report, plan: &Plan, handovers: Vec<Handover>) {
    let how = match plan.stop {
        Signal::SIGTERM => "clean",
        _ => "crash",
    };
    let writeless = handovers.iter().filter_map(|handover| handover.writeless);
    let leaderless = handovers.iter().map(|handover| handover.leaderless);
    for (what, gaps) in [
        ("no leader writes", writeless.collect::<Vec<_>>()),
        ("no leader", leaderless.collect()),
    ] {
        add_gaps(report, &format!("{what} ({how}, {})", plan.profile), gaps);
    }
}

fn add_gaps(report: &mut Report, what: &str, mut gaps: Vec<Duration>) {
    gaps.sort();
    let milliseconds = |gap: &Duration| gap.as_secs_f64() * 1000.0;
    let count = gaps.len();
    if let (Some(median), Some(longest)) = (gaps.get(count / 2), gaps.last()) {
        report.add(
            format!("{what}: median of {count}"),
            milliseconds(median),
            "ms",
        );
        report.add(format!("{what}: longest"), milliseconds(longest), "ms");
    }
}

fn set(name: &str) -> ReplicaSet {
    ReplicaSet {
        metadata: app::metadata(name),
        spec: ReplicaSetSpec {
            replicas: Some(1),
            selector: Some(app::selector(name)),
            template: app::template(name),
            ..Default::default()
        },
        ..Default::default()
    }
}
