//! Samples of the metrics of Pods.

use std::time::Duration;

use setpoint_horizontalpodautoscaler_controller::{Sample, pods_samples, resource_samples};
use setpoint_proto::custom_metrics::{MetricValue, MetricValueList};

use crate::decisions::fixture::{ago, pod_metrics};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_sample_of_a_custom_metric_has_the_window_of_its_value_or_else_that_of_upstream() {
    for (window, expected) in [(Some(30), 30), (Some(0), 0), (None, 60), (Some(-1), 60)] {
        let mut value = MetricValue {
            timestamp: ago(5).into(),
            window_seconds: window,
            ..MetricValue::default()
        };
        value.described_object.name = "web-0".into();
        value.value.string = "1500m".into();
        let list = MetricValueList {
            items: vec![value],
            ..MetricValueList::default()
        };
        let sample = Sample {
            value: 1_500,
            at: ago(5),
            window: seconds(expected),
        };
        assert_eq!(pods_samples(&list), [("web-0".to_owned(), sample)].into());
    }
}

#[test]
fn a_pod_has_a_sample_if_the_usage_of_each_container_that_counts_is_known() {
    let mut partly = pod_metrics("partly", "cpu", &[100, 50]);
    partly.containers[1].usage.clear();
    let all = [
        pod_metrics("both", "cpu", &[100, 50]),
        partly,
        pod_metrics("single", "cpu", &[7]),
        pod_metrics("stopped", "cpu", &[]),
    ];
    let cases: [(_, _, &[(&str, i64)]); 4] = [
        ("cpu", None, &[("both", 150), ("single", 7)]),
        (
            "cpu",
            Some("container1"),
            &[("both", 100), ("partly", 100), ("single", 7)],
        ),
        ("cpu", Some("container2"), &[("both", 50)]),
        ("memory", None, &[]),
    ];
    for (resource, container, expected) in cases {
        let samples = resource_samples(&all, resource, container);
        let values = samples.iter().map(|(pod, sample)| (&**pod, sample.value));
        assert_eq!(
            values.collect::<Vec<_>>(),
            expected,
            "{resource} {container:?}"
        );
    }
}

#[test]
fn a_sample_of_a_resource_has_the_time_and_the_window_of_its_measurement() {
    let mut metrics = pod_metrics("web-0", "cpu", &[100]);
    metrics.timestamp = ago(5).into();
    metrics.window = seconds(30).into();
    let sample = |metrics| resource_samples(&[metrics], "cpu", None)["web-0"];
    let expected = Sample {
        value: 100,
        at: ago(5),
        window: seconds(30),
    };
    assert_eq!(sample(metrics.clone()), expected);
    metrics.window.duration = -1;
    assert_eq!(sample(metrics).window, Duration::ZERO);
}
