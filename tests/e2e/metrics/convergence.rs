//! Convergence is counted once per generation, across restarts and gateways.

#![allow(clippy::unwrap_used, reason = "tests may panic")]

use setpoint_tests::{Address, Cluster, Size, eventually, http};

use super::scene::Scene;
use crate::web;

/// Returns the number of converged generations of a kind, over all gateways.
fn met(addresses: &[Address], kind: &str) -> u64 {
    let series = format!("setpoint_convergence_seconds_count{{kind=\"{kind}\"}} ");
    let count = |address: &Address| {
        let text = Scene::text(address);
        let line = text.lines().find_map(|line| line.strip_prefix(&series));
        line.map_or(0, |count| count.parse::<u64>().unwrap())
    };
    addresses.iter().map(count).sum()
}

#[test]
fn each_generation_is_counted_once_over_gateways_and_restarts() {
    let size = Size {
        gateways: 2,
        ..Size::default()
    };
    let mut cluster = Cluster::start(size);
    let kubectl = cluster.kubectl();
    let gateways = cluster.gateway_urls().each();
    web::apply(&kubectl);
    let counted = |what: &str, wanted: &[(&str, u64)]| {
        eventually(what, || {
            let kinds = wanted.iter().map(|(kind, _)| *kind);
            let met: Vec<_> = kinds.map(|kind| (kind, met(&gateways, kind))).collect();
            (met == wanted)
                .then_some(())
                .ok_or_else(|| format!("{met:?}"))
        });
    };
    let first = [("Deployment", 1), ("ReplicaSet", 1), ("Pod", 3)];
    counted("each is counted", &first);

    let controller = cluster.process("deployment-controller-0");
    controller.kill();
    controller.restart();
    let scaled = r#"{"spec":{"replicas":4}}"#;
    let path = "/apis/apps/v1/namespaces/production/deployments/web-frontend";
    let merge = [("Content-Type", "application/merge-patch+json")];
    let reply = http::send("PATCH", &gateways[1], path, &merge, scaled).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.body);
    web::until_ready(&kubectl, 4);
    let scaled = [("Deployment", 2), ("Pod", 4)];
    counted("the new generation and the new Pod are counted", &scaled);

    let pod = web::text(&web::pods(&kubectl)[0], "/metadata/name").to_owned();
    kubectl.ok(&format!("delete pod {pod} -n production --wait=true"));
    web::until_ready(&kubectl, 4);
    // The Deployment's status is complete as well, so a duplicate count would be visible by now.
    kubectl.ok("rollout status deployment/web-frontend -n production --timeout=60s");
    let replaced = [("Deployment", 2), ("Pod", 5)];
    counted("the new Pod is new, the Deployment is not", &replaced);
}
