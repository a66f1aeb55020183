//! How long nobody works after a leader was stopped or killed: from its last accepted write to its successor's first.

use std::time::Duration;

use nix::sys::signal::Signal;
use setpoint_proto::apps::{ReplicaSet, ReplicaSetSpec};
use setpoint_tests::{Cluster, Handover, History, Reign, eventually, fast_election};
use tokio::task::{JoinHandle, block_in_place};
use tokio::time::interval;

use crate::report::Report;
use crate::{app, client};

const SERVICE: &str = "replicaset-controller";
/// A set of one Pod so often: the leader always has something to write.
const LOAD: Duration = Duration::from_millis(10);

struct Plan {
    profile: &'static str,
    flags: Vec<String>,
    stop: Signal,
    rounds: usize,
}

/// Both profiles, with leaders that are asked to stop and leaders that crash.
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
        tell(report, &plan, replace_leaders(&plan).await?);
    }
    Ok(())
}

async fn replace_leaders(plan: &Plan) -> anyhow::Result<Vec<Handover>> {
    let mut cluster = block_in_place(Cluster::bare);
    for n in 0..2 {
        cluster.service(&format!("{SERVICE}-{n}"), SERVICE, &plan.flags);
    }
    let history = History::of(cluster.etcd_url());
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
            bring_back(&mut cluster, &leader);
        }
    });
    load.abort();
    let reigns = block_in_place(|| Reign::all(&history.all(), SERVICE));
    anyhow::ensure!(reigns.len() > plan.rounds, "{reigns:?}");
    let pairs = reigns.windows(2);
    Ok(pairs.map(|pair| pair[0].handover(&pair[1])).collect())
}

/// Creates sets without a pause between them that a person would notice.
fn load(cluster: &Cluster) -> anyhow::Result<JoinHandle<()>> {
    let gateway = client::connect(cluster.gateway_url())?;
    Ok(tokio::spawn(async move {
        let mut ticks = interval(LOAD);
        for n in 0_u64.. {
            ticks.tick().await;
            // What is not created now is created with the next tick.
            let _ = gateway.create(&set(&format!("load-{n}"))).await;
        }
    }))
}

/// The present leader has written since this was asked.
fn until_it_works(history: &History) {
    let writes = || {
        let reigns = Reign::all(&history.so_far(), SERVICE);
        reigns.last().and_then(|reign| reign.writes)
    };
    let before = writes();
    eventually("the leader writes", || {
        let now = writes();
        (now.is_some() && now != before)
            .then_some(())
            .ok_or(format!("{now:?}"))
    });
}

/// Starts a replica again, and waits until it has said that it is there.
fn bring_back(cluster: &mut Cluster, replica: &str) {
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

fn tell(report: &mut Report, plan: &Plan, handovers: Vec<Handover>) {
    let how = match plan.stop {
        Signal::SIGTERM => "clean",
        _ => "crash",
    };
    let writeless = handovers.iter().filter_map(|handover| handover.writeless);
    let leaderless = handovers.iter().map(|handover| handover.leaderless);
    for (what, gaps) in [
        ("nobody writes", writeless.collect::<Vec<_>>()),
        ("nobody leads", leaderless.collect()),
    ] {
        tell_of(report, &format!("{what} ({how}, {})", plan.profile), gaps);
    }
}

fn tell_of(report: &mut Report, what: &str, mut gaps: Vec<Duration>) {
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
