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

/// The collector accepts connections and never responds.
#[test]
fn a_hanging_collector_delays_neither_the_cluster_nor_its_shutdown() {
    let hanging = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = hanging.local_addr().expect("the listener has an address");
    let mut cluster = Cluster::traced(SMALL, &format!("http://{address}"));
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    until_ready(&kubectl, 3);
    for name in ["scheduler-0", "deployment-controller-0", "gateway-0"] {
        assert!(
            cluster.process(name).stop(),
            "{name} exits without an error"
        );
    }
}

/// Without a collector, spans are lost and one line is logged; when it is available again, spans are exported.
#[test]
fn an_unavailable_collector_is_logged_once_and_used_when_it_is_available_again() {
    let port = free_port();
    let cluster = Cluster::traced(SMALL, &format!("http://127.0.0.1:{port}"));
    let kubectl = cluster.kubectl();
    apply(&kubectl);
    until_ready(&kubectl, 3);
    let controller = "deployment-controller-0";
    let logged = |what: &str| {
        let log = cluster.log(controller);
        (log.matches(what).count() == 1).then_some(()).ok_or(log)
    };
    eventually("the failed export is logged", || {
        logged("spans cannot be exported")
    });
    let jaeger = Jaeger::start_at(port);
    let mut tags = 0..;
    eventually("the resumed export is logged", || {
        // A batch is exported only when there are spans.
        let tag = tags.next().unwrap_or_default();
        kubectl.ok(&format!(
            "set image deployment/web-frontend -n production nginx=nginx:{tag}"
        ));
        logged("spans are exported again")
    });
    logged("spans cannot be exported").expect("the failure is logged");
    eventually("new spans are exported", || {
        let traces = jaeger.traces();
        let names = traces.iter().flat_map(|trace| &trace.spans);
        let names: Vec<_> = names.map(|span| span.name.as_str()).collect();
        let exported = ["POST replicasets", "schedule", "Start"]
            .iter()
            .all(|name| names.contains(name));
        exported.then_some(()).ok_or(format!("{names:?}"))
    });
}

/// The names of the ids are those of OpenTelemetry.
#[test]
fn log_lines_within_a_span_have_trace_and_span_id() {
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
        eventually(
            "a log line has the ids of an exported span of its service",
            || {
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
            },
        );
    }
}

/// Effects of an old trace start a new trace with a link to it.
#[test]
fn a_trace_older_than_the_limit_is_not_continued() {
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
    eventually("the reconcile is a root with a link to the write", || {
        let traces = jaeger.traces();
        let spans = |name: &str| {
            let all = traces.iter().flat_map(|trace| &trace.spans);
            all.filter(|span| span.name == name)
                .cloned()
                .collect::<Vec<_>>()
        };
        let writes = traces
            .iter()
            .filter(|trace| trace.roots()[0].name.starts_with("POST /apis/apps"));
        let written: Vec<_> = writes.map(|trace| trace.id.clone()).collect();
        let cut = spans("reconcile").into_iter().find(|span| {
            span.parent.is_empty() && span.links.iter().any(|link| written.contains(link))
        });
        cut.map(|_| ())
            .ok_or_else(|| traces.iter().map(|trace| trace.tree()).collect())
    });
}
