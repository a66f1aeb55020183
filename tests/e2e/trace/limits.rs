//! What tracing must not do: hold anything up, or go on for ever.

use std::net::TcpListener;

use setpoint_tests::jaeger::Jaeger;
use setpoint_tests::{Cluster, Size, eventually};

use crate::web::{apply, until_ready};

const SMALL: Size = Size {
    gateways: 1,
    replicas: 1,
    process_nodes: 0,
    simulated_nodes: 2,
};

/// A collector that takes connections and never answers is the worst kind.
#[test]
fn a_collector_that_hangs_holds_nothing_up() {
    let deaf = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = deaf.local_addr().expect("it is bound");
    let mut cluster = Cluster::traced(SMALL, &format!("http://{address}"));
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    until_ready(&kubectl, 3);
    for name in ["scheduler-0", "deployment-controller-0", "gateway-0"] {
        assert!(cluster.process(name).stop(), "{name} ends in good order");
    }
}

/// What follows from an old trace begins another, with a link back.
#[test]
fn a_trace_is_cut_when_it_has_become_old() {
    let jaeger = Jaeger::start();
    let mut cluster = Cluster::traced(
        Size {
            replicas: 0,
            ..SMALL
        },
        &jaeger.collector(),
    );
    let kubectl = cluster.kubectl();
    kubectl.ok("create deployment old --image=nginx:1.25");
    let flags = ["--telemetry-trace-age", "1ms"].map(str::to_owned);
    cluster.service("deployment-controller-0", "deployment-controller", &flags);
    eventually(
        "the round is a root of its own, linked to the write",
        || {
            let traces = jaeger.traces();
            let round = |name: &str| {
                let all = traces.iter().flat_map(|trace| &trace.spans);
                all.filter(|span| span.name == name)
                    .cloned()
                    .collect::<Vec<_>>()
            };
            let writes = traces
                .iter()
                .filter(|trace| trace.roots()[0].name.starts_with("POST /apis/apps"));
            let written: Vec<_> = writes.map(|trace| trace.id.clone()).collect();
            let cut = round("reconcile").into_iter().find(|span| {
                span.parent.is_empty() && span.links.iter().any(|link| written.contains(link))
            });
            cut.map(|_| ())
                .ok_or_else(|| traces.iter().map(|trace| trace.tree()).collect())
        },
    );
}
