//! Converts Prometheus series to metric values.

use std::collections::BTreeMap;

use jiff::Timestamp;
use setpoint_codec::Kind;
use setpoint_model::quantity::Amount;
use setpoint_proto::core::ObjectReference;
use setpoint_proto::custom_metrics::{MetricIdentifier, MetricValue, MetricValueList};
use setpoint_proto::external_metrics::{ExternalMetricValue, ExternalMetricValueList};
use setpoint_proto::meta::Quantity;
use setpoint_proto::{ApiError, Reason};

/// The value of a series at a time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sample {
    /// The labels of the series.
    pub(super) labels: BTreeMap<String, String>,
    /// The time.
    pub(super) at: Timestamp,
    /// The value, which may be no number.
    pub(super) value: f64,
}

/// The objects of a request.
pub(super) struct Objects<'a> {
    /// Their kind.
    pub(super) kind: &'a Kind,
    /// Their namespace; empty if they are in none.
    pub(super) namespace: &'a str,
    /// Their names.
    pub(super) names: &'a [String],
    /// The label of series with their names.
    pub(super) label: &'a str,
}

/// Returns the values of a metric of objects, in the order of their names. Objects without a series, or whose value is
/// no number, have none.
///
/// # Errors
/// `InternalError` if an object has several series.
pub(super) fn of_objects(
    objects: &Objects<'_>,
    metric: &MetricIdentifier,
    samples: Vec<Sample>,
) -> Result<MetricValueList, ApiError> {
    let mut of_names = BTreeMap::new();
    for sample in samples {
        let name = sample.labels.get(objects.label).cloned();
        let name = name.filter(|name| objects.names.contains(name));
        let Some(name) = name else { continue };
        if of_names.contains_key(&name) {
            return Err(ambiguous(objects, metric, &name));
        }
        of_names.insert(name, sample);
    }
    let items = of_names.into_iter().filter_map(|(name, sample)| {
        Some(MetricValue {
            described_object: ObjectReference {
                kind: objects.kind.kind.clone(),
                namespace: objects.namespace.to_owned(),
                name,
                api_version: objects.kind.api_version(),
                ..Default::default()
            },
            metric: metric.clone(),
            timestamp: sample.at.into(),
            value: quantity(sample.value)?,
            ..Default::default()
        })
    });
    Ok(MetricValueList {
        items: items.collect(),
        ..Default::default()
    })
}

fn ambiguous(objects: &Objects<'_>, metric: &MetricIdentifier, name: &str) -> ApiError {
    let (metric, plural) = (&metric.name, &objects.kind.plural);
    let message = format!(
        "Internal error occurred: the query of the metric {metric} returns several series for {plural} {name:?}; it must aggregate them by <<by>>"
    );
    ApiError::new(Reason::InternalError, message)
}

/// Returns the values of a metric of no object: one for each series whose value is a number.
pub(super) fn external(metric: &str, samples: Vec<Sample>) -> ExternalMetricValueList {
    let items = samples.into_iter().filter_map(|sample| {
        Some(ExternalMetricValue {
            metric_name: metric.to_owned(),
            value: quantity(sample.value)?,
            metric_labels: sample.labels,
            timestamp: sample.at.into(),
            ..Default::default()
        })
    });
    ExternalMetricValueList {
        items: items.collect(),
        ..Default::default()
    }
}

/// Returns a value in thousandths, rounded to the nearest and within their bounds; `None` for what is no number and for
/// infinities, since replicas must not follow them.
fn quantity(value: f64) -> Option<Quantity> {
    let millis = value.is_finite().then(|| (value * 1000.0).round() as i64)?;
    Some(Quantity::new(Amount::from_millis(millis).canonical()))
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kinds;

    use super::*;

    fn sample(pod: &str, value: f64) -> Sample {
        Sample {
            labels: [("pod".to_owned(), pod.to_owned())].into(),
            at: Timestamp::UNIX_EPOCH,
            value,
        }
    }

    fn of_pods(samples: Vec<Sample>) -> Result<Vec<(String, String)>, String> {
        let names = ["a", "b", "c"].map(str::to_owned);
        let objects = Objects {
            kind: kinds().by_resource("pods").unwrap(),
            namespace: "shop",
            names: &names,
            label: "pod",
        };
        let metric = MetricIdentifier {
            name: "load".to_owned(),
            selector: None,
        };
        let list = of_objects(&objects, &metric, samples).map_err(|error| error.message)?;
        let pair = |item: MetricValue| (item.described_object.name, item.value.string);
        Ok(list.items.into_iter().map(pair).collect())
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        expected.iter().map(owned).collect()
    }

    #[test]
    fn objects_have_the_values_of_their_series_in_thousandths() {
        let samples = vec![sample("b", 1.001), sample("a", 2e3), sample("other", 1.0)];
        let expected = pairs(&[("a", "2k"), ("b", "1001m")]);
        assert_eq!(of_pods(samples), Ok(expected));
    }

    /// 0/0 is no value; as 0 it would scale down.
    #[test]
    fn what_is_no_number_is_no_value() {
        let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for value in values {
            assert_eq!(of_pods(vec![sample("a", value)]), Ok(Vec::new()));
            assert!(external("load", vec![sample("a", value)]).items.is_empty());
        }
        let huge = quantity(1e300).unwrap();
        assert_eq!(huge.string, "9223372036854775807m");
        assert_eq!(quantity(-0.0004).unwrap().string, "0");
    }

    #[test]
    fn several_series_of_an_object_are_an_error() {
        let refused = of_pods(vec![sample("a", 1.0), sample("a", 2.0)]).unwrap_err();
        assert!(
            refused.contains("several series for pods \"a\""),
            "{refused}"
        );
    }
}
