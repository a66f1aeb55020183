//! Failures of the collector do not delay the cluster, and traces end.

use std::net::TcpListener;

use serde_json::Value;
use setpoint_tests::jaeger::Jaeger;
use setpoint_tests::{Cluster, Size, eventually, free_port};

use crate::web::{apply, until_ready};

const SMALL: Size = Size {
    gateways: 1,
    replicas: 1,
    process_nodes: 0,
    simulated_nodes: 2,
};

/// A collector that accepts connections and never answers delays neither the cluster nor its shutdown.
#[test]
fn a_hanging_collector_delays_nothing() {
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

/// While there is no collector, spans are lost and the log says so once; afterwards they are exported again.
#[test]
fn a_collector_that_is_away_is_logged_once_and_used_when_it_returns() {
    let port = free_port();
    let cluster = Cluster::traced(SMALL, &format!("http://127.0.0.1:{port}"));
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    until_ready(&kubectl, 3);
    let controller = "deployment-controller-0";
    let said = |what: &str| {
        let log = cluster.log(controller);
        (log.matches(what).count() == 1).then_some(()).ok_or(log)
    };
    eventually("the log has the failure", || {
        said("spans cannot be exported")
    });
    let jaeger = Jaeger::start_at(port);
    let mut tags = 0..;
    eventually("the log has the return", || {
        // A batch is exported only when there are spans.
        let tag = tags.next().unwrap_or_default();
        kubectl.ok(&format!(
            "set image deployment/web-frontend -n production nginx=nginx:{tag}"
        ));
        said("spans are exported again")
    });
    said("spans cannot be exported").expect("it is logged once");
    eventually("new spans arrive", || {
        let traces = jaeger.traces();
        let names = traces.iter().flat_map(|trace| &trace.spans);
        let names: Vec<_> = names.map(|span| span.name.as_str()).collect();
        let exported = ["POST replicasets", "schedule", "Start"]
            .iter()
            .all(|name| names.contains(name));
        exported.then_some(()).ok_or(format!("{names:?}"))
    });
}

/// Log lines within a span carry the ids of trace and span, in OpenTelemetry's names.
#[test]
fn a_log_line_leads_to_its_span() {
    let jaeger = Jaeger::start();
    let size = Size {
        replicas: 0,
        ..SMALL
    };
    let mut cluster = Cluster::traced(size, &jaeger.collector());
    let services = [
        ("deployment-controller", "done"),
        ("replicaset-controller", "done"),
        ("scheduler", "bound"),
    ];
    let flags = ["--log", "debug"].map(str::to_owned);
    for (service, _) in services {
        cluster.service(service, 0, &flags);
    }
    let kubectl = cluster.kubectl();
    kubectl.ok("create deployment logged --image=nginx:1.25");
    for (service, message) in services {
        eventually("a line names a span of its service that arrives", || {
            let log = cluster.log(&format!("{service}-0"));
            let lines = log
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            let mut lines = lines.filter(|line: &Value| line["message"] == message);
            let found = lines.any(|line| {
                let id = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
                let trace = jaeger.trace(&id("trace_id"));
                let mut spans = trace.spans.iter();
                spans.any(|span| span.id == id("span_id") && span.service == service)
            });
            found.then_some(()).ok_or(log)
        });
    }
}

/// Effects of an old trace start another one, with a link back.
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
    cluster.service("deployment-controller", 0, &flags);
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
