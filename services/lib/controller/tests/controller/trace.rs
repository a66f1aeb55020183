//! A cascade is one trace: the writes of a controller continue the trace of their cause.

use std::sync::LazyLock;

use opentelemetry::global;
use opentelemetry_sdk::trace::SdkTracerProvider;
use setpoint_proto::Cause;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::trace::now_ns;

use crate::controller::{Process, copies, origin, reported};
use crate::leaders::server;
use crate::server::eventually;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

fn because(trace: &str) -> Cause {
    Cause {
        traceparent: format!("00-{trace}-00f067aa0ba902b7-01").parse().ok(),
        began_ns: began(),
        depth: 2,
        ..Cause::default()
    }
}

/// Returns a time one minute before the first call.
fn began() -> i64 {
    static BEGAN: LazyLock<i64> = LazyLock::new(|| now_ns() - 60_000_000_000);
    *BEGAN
}

fn trace_of(cause: &Cause) -> String {
    let span = cause.traceparent;
    span.map(|span| span.trace_id()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn every_write_of_a_cascade_is_in_the_trace_of_its_first() {
    global::set_tracer_provider(SdkTracerProvider::builder().build());
    let server = server().await;
    // One object before the controller starts, one after: a cascade continues after a change of the leader.
    server.put_because(&origin("before", 3), because(TRACE));
    let _process = Process::start(&server, "copies-0");
    eventually("all are there", async || copies(&server) == 3).await;
    server.put_because(&origin("after", 4), because(TRACE));
    let done = async || reported(&server, "after").as_deref() == Some("4");
    eventually("all are there", done).await;
    for object in server.all::<ConfigMap>() {
        let cause = server.cause(&object).unwrap();
        assert_eq!(trace_of(&cause), TRACE, "{}", object.metadata.name);
        assert_eq!(cause.began_ns, began(), "{}", object.metadata.name);
        let is_copy = !object.metadata.owner_references.is_empty();
        let depth = if is_copy { 3 } else { 4 }; // the report follows from the copies
        assert_eq!(cause.depth, depth, "{}", object.metadata.name);
    }
}

/// Without a tracer there are no spans, but a trace in a request is in every write that follows from it.
#[tokio::test(start_paused = true)]
async fn a_trace_continues_in_processes_without_a_tracer() {
    let server = server().await;
    let _process = Process::start(&server, "copies-0");
    server.put_because(&origin("web", 3), because(TRACE));
    let done = async || reported(&server, "web").as_deref() == Some("3");
    eventually("all are there", done).await;
    for object in server.all::<ConfigMap>() {
        let cause = server.cause(&object).unwrap();
        assert_eq!(trace_of(&cause), TRACE, "{}", object.metadata.name);
    }
}
