//! A cluster whose every span arrives at a Jaeger of its own.

use setpoint_machinery::gateway::{Gateway, Settings};
use setpoint_model::Key;
use setpoint_proto::Resource as _;
use setpoint_proto::apps::Deployment;
use setpoint_tests::jaeger::Jaeger;
use setpoint_tests::trace::Trace;
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

/// Spans of one step, each below the one before.
pub type Path<'p> = &'p [(&'p str, &'p str)];

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
        for service in [
            "deployment-controller",
            "replicaset-controller",
            "scheduler",
        ] {
            cluster.leader(service);
        }
        Self {
            jaeger,
            cluster,
            kubectl,
        }
    }

    /// The trace of the last write of the Deployment, once nothing in it is missing and these paths are in it, each so often.
    pub fn cascade(&self, paths: &[(Path<'_>, usize)]) -> Trace {
        let id = self.last_cause();
        eventually("the cascade is drawn", || {
            let trace = self.jaeger.trace(&id);
            if trace.spans.is_empty() {
                return Err(format!("nothing of {id}"));
            }
            let orphans = trace.orphans();
            if !orphans.is_empty() {
                return Err(format!("orphans: {orphans:?}\n{}", trace.tree()));
            }
            for service in ["replicaset-controller", "deployment-controller"] {
                if !trace.spans.iter().any(|span| span.is(&(service, "report"))) {
                    return Err(format!("no report of the {service}\n{}", trace.tree()));
                }
            }
            for (path, times) in paths {
                let found = trace.follow(path).len();
                if found < *times {
                    return Err(format!("{found} × {path:?}\n{}", trace.tree()));
                }
            }
            Ok(trace)
        })
    }

    fn last_cause(&self) -> String {
        let settings = Settings {
            address: self.cluster.gateway_url(),
            ..Settings::default()
        };
        let key = Key::new("production", "web-frontend");
        let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
        let object = runtime.block_on(async {
            let gateway = Gateway::connect(&settings, "test").expect("it is an address");
            gateway.object(Deployment::RESOURCE, &key).await
        });
        let cause = object.expect("it is there").cause.expect("it was written");
        let trace = cause.traceparent.split('-').nth(1);
        trace.expect("it was traced").to_owned()
    }
}
