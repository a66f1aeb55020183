//! What the user of the soak declares: the objects, and how they should be at the end.

use serde::Serialize;
use serde_json::{Value, json};

/// The namespaces of the soak.
pub const NAMESPACES: [&str; 3] = ["soak-0", "soak-1", "soak-2"];
/// The label of a node that the DaemonSets select by.
pub const SLICE: &str = "soak-slice";
/// The CPU that each Pod of an autoscaled Deployment requests, in millicores.
pub const REQUEST: i64 = 100;
/// The target of HorizontalPodAutoscalers, in percent of [`REQUEST`].
pub const TARGET: i64 = 70;
/// Bounds of HorizontalPodAutoscalers.
pub const BOUNDS: (i64, i64) = (1, 10);

/// The kinds of workloads that the user creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Kind {
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
    Job,
    CronJob,
}

impl Kind {
    /// The path of the resource below the server, with the group and version.
    pub fn resource(self) -> (&'static str, &'static str) {
        match self {
            Self::Deployment => ("apps/v1", "deployments"),
            Self::ReplicaSet => ("apps/v1", "replicasets"),
            Self::StatefulSet => ("apps/v1", "statefulsets"),
            Self::DaemonSet => ("apps/v1", "daemonsets"),
            Self::Job => ("batch/v1", "jobs"),
            Self::CronJob => ("batch/v1", "cronjobs"),
        }
    }
}

/// A workload as the user wants it.
#[derive(Clone, Debug)]
pub struct Workload {
    pub kind: Kind,
    pub namespace: &'static str,
    pub name: String,
    /// The number of the image.
    pub image: u32,
    pub shape: Shape,
}

/// What differs between the kinds.
#[derive(Clone, Debug)]
pub enum Shape {
    /// A number of replicas; `None` once an autoscaler has set it.
    Replicas {
        replicas: Option<i64>,
        /// The strategy of a Deployment, the Pod management of a StatefulSet.
        strategy: &'static str,
        /// The load of an autoscaled Deployment in millicores, and whether its HorizontalPodAutoscaler exists.
        load: Option<(i64, bool)>,
    },
    /// The nodes with this value of the label [`SLICE`].
    Slice(usize),
    /// A Job.
    Run(Run),
    /// A CronJob, which runs every minute.
    EveryMinute {
        concurrency: &'static str,
        suspended: bool,
    },
}

/// What a Job does.
#[derive(Clone, Debug)]
pub struct Run {
    pub completions: i64,
    pub parallelism: i64,
    pub indexed: bool,
    /// The number of its retries; its Pods fail.
    pub failing: Option<i64>,
    pub suspended: bool,
    /// Whether it is deleted when it has finished.
    pub ttl: bool,
    /// Seconds that a Pod runs.
    pub seconds: u32,
}

impl Workload {
    /// Returns the path of its resource in its namespace.
    pub fn collection(&self) -> String {
        let (group, plural) = self.kind.resource();
        collection(group, self.namespace, plural)
    }

    /// Returns the path of the object.
    pub fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    /// Returns the path of its HorizontalPodAutoscaler, which has its name.
    pub fn autoscaler(&self) -> String {
        let hpas = collection("autoscaling/v2", self.namespace, "horizontalpodautoscalers");
        format!("{hpas}/{}", self.name)
    }

    /// Returns the object to create.
    pub fn manifest(&self) -> Value {
        let (group, _) = self.kind.resource();
        json!({
            "apiVersion": group,
            "kind": format!("{:?}", self.kind),
            "metadata": {"name": self.name, "labels": self.labels()},
            "spec": self.spec(),
        })
    }

    /// Returns the HorizontalPodAutoscaler to create.
    pub fn autoscaler_manifest(&self) -> Value {
        let target = json!({"type": "Utilization", "averageUtilization": TARGET});
        json!({
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": self.name, "labels": self.labels()},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": self.name},
                "minReplicas": BOUNDS.0,
                "maxReplicas": BOUNDS.1,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
            },
        })
    }

    fn labels(&self) -> Value {
        json!({"app": self.name})
    }

    fn spec(&self) -> Value {
        let selector = json!({"matchLabels": self.labels()});
        let template = self.template();
        match &self.shape {
            Shape::Replicas {
                replicas, strategy, ..
            } => {
                let mut spec = json!({
                    "replicas": replicas, "selector": selector, "template": template,
                });
                match self.kind {
                    Kind::Deployment => spec["strategy"] = json!({"type": strategy}),
                    Kind::StatefulSet => spec["podManagementPolicy"] = json!(strategy),
                    _ => {}
                }
                spec
            }
            Shape::Slice(_) => json!({
                "selector": selector,
                "template": template,
                "updateStrategy": {"rollingUpdate": {"maxUnavailable": "50%"}},
            }),
            Shape::Run(run) => run.spec(&template),
            Shape::EveryMinute {
                concurrency,
                suspended,
            } => json!({
                "schedule": "* * * * *",
                "concurrencyPolicy": concurrency,
                "suspend": suspended,
                "jobTemplate": {"metadata": {"labels": self.labels()}, "spec": {"template": template}},
            }),
        }
    }

    fn template(&self) -> Value {
        let mut container = json!({"name": "main", "image": self.image()});
        let mut pod = json!({});
        let mut annotations = json!({});
        match &self.shape {
            Shape::Run(run) => {
                container["command"] = run.command();
                pod["restartPolicy"] = json!("Never");
            }
            Shape::EveryMinute { .. } => {
                container["command"] = json!(["sleep", "2"]);
                pod["restartPolicy"] = json!("Never");
            }
            Shape::Slice(slice) => pod["nodeSelector"] = json!({SLICE: slice.to_string()}),
            Shape::Replicas { load, .. } => {
                if let Some((load, _)) = load {
                    container["resources"] = json!({"requests": {"cpu": format!("{REQUEST}m")}});
                    annotations = json!({"setpoint.dev/simulated-load": format!("{load}m")});
                }
            }
        }
        pod["containers"] = json!([container]);
        json!({"metadata": {"labels": self.labels(), "annotations": annotations}, "spec": pod})
    }

    /// Returns the image of its containers.
    pub fn image(&self) -> String {
        format!("soak:{}", self.image)
    }
}

impl Run {
    fn spec(&self, template: &Value) -> Value {
        let mut spec = json!({
            "completions": self.completions,
            "parallelism": self.parallelism,
            "suspend": self.suspended,
            // A Pod whose agent was killed counts as failed; it must not fail the Job.
            "backoffLimit": self.failing.unwrap_or(1000),
            "template": template,
        });
        if self.indexed {
            spec["completionMode"] = json!("Indexed");
        }
        if self.ttl {
            spec["ttlSecondsAfterFinished"] = json!(1);
        }
        spec
    }

    fn command(&self) -> Value {
        match self.failing {
            Some(_) => json!(["false"]),
            None => json!(["sleep", self.seconds.to_string()]),
        }
    }
}

/// Returns the path of a resource in a namespace.
pub fn collection(group: &str, namespace: &str, plural: &str) -> String {
    match group {
        "v1" => format!("/api/v1/namespaces/{namespace}/{plural}"),
        _ => format!("/apis/{group}/namespaces/{namespace}/{plural}"),
    }
}
