//! A cluster that exports all spans to a Jaeger of its own.

use setpoint_model::Key;
use setpoint_proto::Resource as _;
use setpoint_proto::apps::Deployment;
use setpoint_tests::jaeger::Jaeger;
use setpoint_tests::trace::Trace;
use setpoint_tests::{Cluster, ELECTED, Kubectl, Size, client, eventually};

/// A path of spans, parent to child.
pub type Path<'p> = &'p [(&'p str, &'p str)];

/// The services that take part in the rollout of a Deployment.
pub const CASCADE: [&str; 5] = [
    "gateway",
    "deployment-controller",
    "replicaset-controller",
    "scheduler",
    "node-agent",
];

/// From the ReplicaSet's reconcile to the status of a new Pod. Later reconciles may have several causes and are left
/// out.
pub const POD: Path<'_> = &[
    ("replicaset-controller", "reconcile"),
    ("replicaset-controller", "Create"),
    ("gateway", "POST pods"),
    ("scheduler", "schedule"),
    ("gateway", "POST pods"),
    ("node-agent", "reconcile"),
    ("node-agent", "report"),
    ("gateway", "PUT pods"),
];

pub struct Watched {
    pub jaeger: Jaeger,
    pub cluster: Cluster,
    pub kubectl: Kubectl,
}

impl Watched {
    pub fn start(size: Size) -> Self {
        let jaeger = Jaeger::start();
        let cluster = Cluster::traced(size, &jaeger.collector());
        let kubectl = cluster.kubectl();
        for service in ELECTED {
            cluster.leader(service);
        }
        Self {
            jaeger,
            cluster,
            kubectl,
        }
    }

    /// Returns the trace of the last write of the Deployment, once all services of a rollout have spans in it, each
    /// path is in it at least as often as given, and `lacks` returns `None`.
    pub fn cascade(
        &self,
        paths: &[(Path<'_>, usize)],
        lacks: impl Fn(&Trace) -> Option<String>,
    ) -> Trace {
        eventually("the trace has the cascade", || {
            // The status of the Deployment is written after that of its Pods.
            let id = self.last_cause();
            let trace = self.jaeger.trace(&id);
            match missing(&trace, paths).or_else(|| lacks(&trace)) {
                Some(missing) => Err(format!("{id}: {missing}\n{}", trace.tree())),
                None => Ok(trace),
            }
        })
    }

    /// Returns the trace that has the path at least as often as given and `is_complete`.
    pub fn trace_with(
        &self,
        path: Path<'_>,
        times: usize,
        is_complete: impl Fn(&Trace) -> bool,
    ) -> Trace {
        eventually("a trace has the path", || {
            let traces = self.jaeger.traces();
            let has = |trace: &&Trace| trace.follow(path).len() >= times && is_complete(trace);
            let found = traces.iter().find(has).cloned();
            found.ok_or_else(|| {
                traces
                    .iter()
                    .map(Trace::tree)
                    .collect::<Vec<_>>()
                    .join("\n")
            })
        })
    }

    fn last_cause(&self) -> String {
        let key = Key::new("production", "web-frontend");
        let runtime = tokio::runtime::Runtime::new().expect("the runtime can be built");
        let object = runtime.block_on(async {
            let gateway = client(&self.cluster.gateway_url());
            gateway.object(Deployment::RESOURCE, &key).await
        });
        let cause = object
            .expect("the object exists")
            .cause
            .expect("it has a cause");
        cause.trace_id().expect("the write was traced")
    }
}

/// Returns what is missing of a cascade.
fn missing(trace: &Trace, paths: &[(Path<'_>, usize)]) -> Option<String> {
    let part = trace.services();
    if let Some(service) = CASCADE.iter().find(|service| !part.contains(*service)) {
        return Some(format!("no part of the {service}"));
    }
    let reports = |service: &&str| {
        trace
            .spans
            .iter()
            .any(|span| span.is(&(*service, "report")))
    };
    let mut controllers = ["replicaset-controller", "deployment-controller"].into_iter();
    if let Some(service) = controllers.find(|service| !reports(service)) {
        return Some(format!("no report of the {service}"));
    }
    let mut found = paths
        .iter()
        .map(|(path, times)| (trace.follow(path).len(), times, path));
    let few = found.find(|(found, times, _)| found < *times);
    few.map(|(found, times, path)| format!("{found} of {times} × {path:?}"))
}
