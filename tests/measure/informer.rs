//! Measures the memory of a Pod in a controller's cache.

use std::time::Duration;

use setpoint_proto::core::{Container, EnvVar, Pod, PodSpec};
use setpoint_proto::meta::ObjectMeta;
use setpoint_tests::{Cluster, client};

use crate::process::memory;
use crate::report::Report;

const PODS: usize = 10_000;

/// Reports the growth of the replicaset-controller's resident memory by ten thousand Pods that it does not own.
pub async fn measure(report: &mut Report) -> anyhow::Result<()> {
    let mut cluster = Cluster::bare();
    cluster.service("replicaset-controller", 0, &[]);
    let pid = cluster.process("replicaset-controller-0").pid();
    let gateway = client(&cluster.gateway_url());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = memory(pid);
    let creates = (0..PODS).map(|n| {
        let gateway = gateway.clone();
        async move { gateway.create(&pod(n)).await.map(drop) }
    });
    futures::TryStreamExt::try_collect::<()>(futures::StreamExt::buffer_unordered(
        futures::stream::iter(creates),
        32,
    ))
    .await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let each = (memory(pid) - before) as f64 / PODS as f64;
    report.add(
        "bytes per cached Pod in the replicaset-controller",
        each,
        "B",
    );
    Ok(())
}

fn pod(n: usize) -> Pod {
    let env = |n: usize| EnvVar {
        name: format!("NAME_{n}"),
        value: "a value of some length".to_owned(),
        ..Default::default()
    };
    Pod {
        metadata: ObjectMeta {
            namespace: "default".to_owned(),
            name: format!("pod-{n}"),
            labels: [
                ("app".to_owned(), "bench".to_owned()),
                ("tier".to_owned(), "web".to_owned()),
            ]
            .into(),
            ..Default::default()
        },
        spec: PodSpec {
            containers: vec![Container {
                name: "app".to_owned(),
                image: "registry.example/app:1".to_owned(),
                env: (0..8).map(env).collect(),
                ..Default::default()
            }],
            ..Default::default()
        },
        ..Default::default()
    }
}
