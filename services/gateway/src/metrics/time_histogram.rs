//! Histograms of a ratio over time: the nanoseconds for which it had values up to each bound (upstream:
//! `TimingRatioHistogram`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use prometheus::core::{Collector, Desc};
use prometheus::proto::{Bucket, Histogram, LabelPair, Metric, MetricFamily, MetricType};
use setpoint_telemetry::metrics::UNIQUE;

/// The histograms of a name, by the values of their labels.
#[derive(Clone, Debug)]
pub(crate) struct TimeHistograms(Arc<Family>);

#[derive(Debug)]
struct Family {
    desc: Desc,
    bounds: &'static [f64],
    series: Mutex<BTreeMap<Vec<String>, Arc<TimeHistogram>>>,
}

/// A ratio, and how long it had which value.
#[derive(Debug)]
pub(crate) struct TimeHistogram {
    bounds: &'static [f64],
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    numerator: f64,
    denominator: f64,
    since: Instant,
    /// The nanoseconds in each bucket, the last of which has no bound.
    nanoseconds: Vec<u64>,
    sum: f64,
}

/// Registers histograms with these upper bounds.
///
/// # Panics
/// If the name is registered already.
pub(crate) fn time_histograms(
    name: &str,
    help: &str,
    labels: &[&str],
    bounds: &'static [f64],
) -> TimeHistograms {
    let labels = labels.iter().map(ToString::to_string).collect();
    let desc = Desc::new(name.to_owned(), help.to_owned(), labels, Default::default());
    let histograms = TimeHistograms(Arc::new(Family {
        desc: desc.expect("name and labels are valid"),
        bounds,
        series: Mutex::default(),
    }));
    prometheus::register(Box::new(histograms.clone())).expect(UNIQUE);
    histograms
}

impl TimeHistograms {
    /// Returns the histogram of a ratio that is 0 of 1 until it is set.
    pub(crate) fn with_label_values(&self, values: &[&str]) -> Arc<TimeHistogram> {
        let values = values.iter().map(ToString::to_string).collect();
        let mut series = self.0.series.lock();
        let histogram = series.entry(values);
        histogram
            .or_insert_with(|| Arc::new(TimeHistogram::new(self.0.bounds, now())))
            .clone()
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl TimeHistogram {
    fn new(bounds: &'static [f64], now: Instant) -> Self {
        Self {
            bounds,
            state: Mutex::new(State {
                numerator: 0.0,
                denominator: 1.0,
                since: now,
                nanoseconds: vec![0; bounds.len() + 1],
                sum: 0.0,
            }),
        }
    }

    /// Sets the numerator from now on.
    pub(crate) fn set(&self, numerator: usize) {
        self.update(now(), |state| state.numerator = numerator as f64);
    }

    /// Adds to the numerator from now on.
    pub(crate) fn add(&self, difference: f64) {
        self.update(now(), |state| state.numerator += difference);
    }

    /// Sets the denominator from now on; at least 1.
    pub(crate) fn set_denominator(&self, denominator: usize) {
        let denominator = denominator.max(1) as f64;
        self.update(now(), |state| state.denominator = denominator);
    }

    fn update(&self, now: Instant, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        let passed = now.saturating_duration_since(state.since).as_nanos();
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        let ratio = state.numerator / state.denominator;
        let bucket = self.bounds.partition_point(|bound| *bound < ratio);
        state.nanoseconds[bucket] = state.nanoseconds[bucket].saturating_add(passed);
        state.sum += ratio * passed as f64;
        state.since = state.since.max(now);
        change(&mut state);
    }

    fn metric(&self, now: Instant) -> Histogram {
        self.update(now, |_| ());
        let state = self.state.lock();
        let mut total: u64 = 0;
        let mut counts = state.nanoseconds.iter().map(|nanoseconds| {
            total = total.saturating_add(*nanoseconds);
            total
        });
        let buckets = self.bounds.iter().zip(counts.by_ref());
        let buckets = buckets.map(|(bound, count)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(count);
            bucket
        });
        let mut histogram = Histogram::default();
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(counts.last().unwrap_or_default());
        histogram.set_sample_sum(state.sum);
        histogram
    }
}

impl Collector for TimeHistograms {
    fn desc(&self) -> Vec<&Desc> {
        vec![&self.0.desc]
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let Family { desc, series, .. } = &*self.0;
        let now = now();
        let series = series.lock();
        let metrics = series.iter().map(|(values, histogram)| {
            let labels = desc.variable_labels.iter().zip(values);
            let labels = labels.map(|(name, value)| {
                let mut label = LabelPair::default();
                label.set_name(name.clone());
                label.set_value(value.clone());
                label
            });
            let mut metric = Metric::from_label(labels.collect());
            metric.set_histogram(histogram.metric(now));
            metric
        });
        let metrics: Vec<_> = metrics.collect();
        let mut family = MetricFamily::default();
        family.set_name(desc.fq_name.clone());
        family.set_help(desc.help.clone());
        family.set_field_type(MetricType::HISTOGRAM);
        family.set_metric(metrics);
        vec![family]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_value_counts_for_as_long_as_it_lasts() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let histogram = TimeHistogram::new(&[0.0, 0.5, 1.0], start);
        histogram.update(at(1), |state| {
            (state.numerator, state.denominator) = (1.0, 2.0)
        });
        histogram.update(at(3), |state| state.numerator = 3.0);
        let metric = histogram.metric(at(6));
        let counts = metric.get_bucket().iter();
        let counts: Vec<_> = counts.map(Bucket::cumulative_count).collect();
        const SECOND: u64 = 1_000_000_000;
        assert_eq!(counts, [SECOND, 3 * SECOND, 3 * SECOND]);
        assert_eq!(metric.get_sample_count(), 6 * SECOND);
        assert_eq!(metric.get_sample_sum(), 5.5 * SECOND as f64);
    }
}
