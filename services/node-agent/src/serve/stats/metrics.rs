//! The page `/metrics/resource`: the summary of CPU and memory as metrics, with the kubelet's names.

use std::fmt::Write as _;

use setpoint_proto::meta::Time;

use super::{ContainerStats, CpuStats, MemoryStats, PodStats, Summary};

/// A metric: its name, type and help, and the samples that it has.
type Metric = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Summary, &mut Samples),
);

const METRICS: [Metric; 8] = [
    (
        "node_cpu_usage_seconds_total",
        "counter",
        "CPU time of the node in seconds",
        |summary, samples| samples.cpu("", summary.node.cpu.as_ref()),
    ),
    (
        "node_memory_working_set_bytes",
        "gauge",
        "Working set of the node in bytes",
        |summary, samples| samples.memory("", summary.node.memory.as_ref()),
    ),
    (
        "container_start_time_seconds",
        "gauge",
        "Start of the container in seconds since 1970",
        |summary, samples| {
            each_container(summary, |labels, one| {
                let start = one.start_time.and_then(|time| time.timestamp());
                if let Some(start) = start {
                    samples.add(labels, start.as_millisecond() as f64 / 1e3, None);
                }
            });
        },
    ),
    (
        "container_cpu_usage_seconds_total",
        "counter",
        "CPU time of the container in seconds",
        |summary, samples| {
            each_container(summary, |labels, one| samples.cpu(labels, one.cpu.as_ref()))
        },
    ),
    (
        "container_memory_working_set_bytes",
        "gauge",
        "Working set of the container in bytes",
        |summary, samples| {
            each_container(summary, |labels, one| {
                samples.memory(labels, one.memory.as_ref())
            });
        },
    ),
    (
        "pod_cpu_usage_seconds_total",
        "counter",
        "CPU time of the Pod in seconds",
        |summary, samples| each_pod(summary, |labels, pod| samples.cpu(labels, pod.cpu.as_ref())),
    ),
    (
        "pod_memory_working_set_bytes",
        "gauge",
        "Working set of the Pod in bytes",
        |summary, samples| {
            each_pod(summary, |labels, pod| {
                samples.memory(labels, pod.memory.as_ref())
            })
        },
    ),
    (
        "resource_scrape_error",
        "gauge",
        "1 if there was an error while getting container metrics, 0 otherwise",
        |summary, samples| samples.add("", f64::from(u8::from(some_unread(summary))), None),
    ),
];

/// Returns a summary in Prometheus' text format.
pub fn text(summary: &Summary) -> String {
    let mut page = String::new();
    for (name, kind, help, of) in METRICS {
        let mut samples = Samples {
            name,
            text: String::new(),
        };
        of(summary, &mut samples);
        if !samples.text.is_empty() {
            // Writing to a string does not fail.
            let _ = write!(
                page,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{}",
                samples.text
            );
        }
    }
    page
}

/// The samples of a metric, a line each.
struct Samples {
    name: &'static str,
    text: String,
}

impl Samples {
    fn add(&mut self, labels: &str, value: f64, at: Option<Time>) {
        let at = at.and_then(|time| time.timestamp());
        let at = at.map(|at| format!(" {}", at.as_millisecond()));
        let _ = writeln!(
            self.text,
            "{}{labels} {value}{}",
            self.name,
            at.unwrap_or_default()
        );
    }

    fn cpu(&mut self, labels: &str, cpu: Option<&CpuStats>) {
        let total = cpu.and_then(|cpu| Some((cpu.usage_core_nano_seconds?, cpu.time)));
        if let Some((total, time)) = total {
            self.add(labels, total as f64 / 1e9, Some(time));
        }
    }

    fn memory(&mut self, labels: &str, memory: Option<&MemoryStats>) {
        if let Some(memory) = memory {
            self.add(labels, memory.working_set_bytes as f64, Some(memory.time));
        }
    }
}

/// Returns whether a container that had started before the last reading has not been read.
fn some_unread(summary: &Summary) -> bool {
    let Some(last) = &summary.node.cpu else {
        return false;
    };
    let containers = summary.pods.iter().flat_map(|pod| &pod.containers);
    let mut unread = containers.filter(|one| one.cpu.is_none());
    unread.any(|one| {
        let start = one.start_time.and_then(|time| time.timestamp());
        start.is_some_and(|start| Some(start) < last.time.timestamp())
    })
}

fn each_pod(summary: &Summary, mut add: impl FnMut(&str, &PodStats)) {
    for pod in &summary.pods {
        add(&format!("{{{}}}", labels(pod)), pod);
    }
}

fn each_container(summary: &Summary, mut add: impl FnMut(&str, &ContainerStats)) {
    for pod in &summary.pods {
        for container in &pod.containers {
            let own = format!("{{container=\"{}\",{}}}", container.name, labels(pod));
            add(&own, container);
        }
    }
}

/// Returns the labels of a Pod. Names in Kubernetes have no characters that would need an escape.
fn labels(pod: &PodStats) -> String {
    let reference = &pod.pod_ref;
    format!(
        "namespace=\"{}\",pod=\"{}\"",
        reference.namespace, reference.name
    )
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::{NodeStats, PodReference};
    use super::*;

    fn at(second: i64) -> Time {
        Time::from(Timestamp::from_second(second).unwrap())
    }

    fn cpu(nanoseconds: u64) -> CpuStats {
        CpuStats {
            time: at(9),
            usage_nano_cores: None,
            usage_core_nano_seconds: Some(nanoseconds),
        }
    }

    /// Returns a summary of a Pod with one container, read at 9 s.
    fn summary(container: ContainerStats) -> Summary {
        Summary {
            node: NodeStats {
                cpu: Some(cpu(2_000_000_000)),
                ..NodeStats::default()
            },
            pods: vec![PodStats {
                pod_ref: PodReference {
                    name: "p".into(),
                    namespace: "a".into(),
                    uid: "u".into(),
                },
                start_time: None,
                cpu: None,
                memory: container.memory.clone(),
                containers: vec![container],
                volume: Vec::new(),
                ephemeral_storage: None,
            }],
        }
    }

    fn container(started: i64, cpu: Option<CpuStats>) -> ContainerStats {
        ContainerStats {
            name: "web".into(),
            start_time: Some(at(started)),
            cpu,
            memory: None,
            rootfs: None,
            logs: None,
        }
    }

    #[test]
    fn a_container_that_had_started_and_was_not_read_is_an_error() {
        for (started, read, error) in [(5, true, 0), (5, false, 1), (9, false, 0), (10, false, 0)] {
            let page = text(&summary(container(started, read.then(|| cpu(1)))));
            let sample = format!("resource_scrape_error {error}\n");
            assert!(page.ends_with(&sample), "{started} {read}: {page}");
        }
    }

    #[test]
    fn samples_have_the_names_of_the_kubelet_and_the_time_of_their_measurement() {
        let web = ContainerStats {
            memory: Some(MemoryStats {
                time: at(9),
                available_bytes: None,
                working_set_bytes: 4096,
            }),
            ..container(5, Some(cpu(1_500_000_000)))
        };
        let page = text(&summary(web));
        let samples: Vec<_> = page.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "node_cpu_usage_seconds_total 2 9000",
            r#"container_start_time_seconds{container="web",namespace="a",pod="p"} 5"#,
            r#"container_cpu_usage_seconds_total{container="web",namespace="a",pod="p"} 1.5 9000"#,
            r#"container_memory_working_set_bytes{container="web",namespace="a",pod="p"} 4096 9000"#,
            r#"pod_memory_working_set_bytes{namespace="a",pod="p"} 4096 9000"#,
            "resource_scrape_error 0",
        ];
        assert_eq!(samples, expected);
        assert!(page.contains("# TYPE node_cpu_usage_seconds_total counter\n"));
    }
}
