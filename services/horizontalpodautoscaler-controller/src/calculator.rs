//! The calculator: the replicas that bring a metric to its target.
//!
//! Pods whose metrics are missing or mean nothing yet are treated conservatively: as if they used nothing where the
//! others ask for more replicas, and as if they were at the target where the others ask for fewer. They damp a change
//! but never turn it.
#![warn(clippy::arithmetic_side_effects)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use setpoint_model::time;

use crate::{Autoscaling, Phase, PodView, Sample, Samples};

/// The resource whose usage means nothing while a Pod starts.
const CPU: &str = "cpu";

/// Ratios of usage to target that change nothing, as distances from 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerances {
    /// Below 1.
    pub down: f64,
    /// Above 1.
    pub up: f64,
}

impl Tolerances {
    fn contain(self, ratio: f64) -> bool {
        1.0 - self.down <= ratio && ratio <= 1.0 + self.up
    }
}

/// The replicas for a metric, and the usage that they follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The replicas that bring the metric to its target.
    pub replicas: i32,
    /// The value of the metric in thousandths; the average if its target is one.
    pub value: i64,
    /// The usage in percent of the requests.
    pub percent: i32,
}

/// The Pods by what their metrics mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups<'a> {
    /// The number of Pods whose metrics count.
    pub ready: usize,
    /// Pods that have not started, or have been ready too shortly.
    pub unready: BTreeSet<&'a str>,
    /// Pods without metrics.
    pub missing: BTreeSet<&'a str>,
    /// Pods that have failed or are being deleted.
    pub ignored: BTreeSet<&'a str>,
}

/// Computes replicas from metrics.
#[derive(Clone, Copy, Debug)]
pub struct Calculator<'a> {
    /// The selected Pods.
    pub pods: &'a [Arc<PodView>],
    /// The replicas that the target is set to.
    pub current: i32,
    /// The replicas that the target has.
    pub observed: i32,
    /// The deviations that change nothing.
    pub tolerances: Tolerances,
    /// The periods of starting Pods.
    pub settings: &'a Autoscaling,
    /// The time.
    pub now: Timestamp,
}

/// How samples of Pods are compared with a target.
enum Measure<'a> {
    Percent {
        target: i32,
        requests: BTreeMap<&'a str, i64>,
    },
    Average {
        target: i64,
    },
}

/// The outcome of a comparison.
struct Measured {
    ratio: f64,
    value: i64,
    percent: i32,
}

impl Calculator<'_> {
    /// Returns the replicas that bring the usage of a resource to a percentage of the requests.
    ///
    /// # Errors
    /// If there are no Pods or samples, or a Pod has no request; in upstream's words.
    pub fn utilization(
        &self,
        samples: Samples,
        resource: &str,
        container: Option<&str>,
        target: i32,
    ) -> Result<Usage, String> {
        let requests = || {
            let request = |pod: &'_ Arc<PodView>| pod.request(resource, container);
            let named = self.pods.iter().map(|pod| Ok((name(pod), request(pod)?)));
            let requests = named.collect::<Result<_, String>>()?;
            Ok(Measure::Percent { target, requests })
        };
        self.of_samples(samples, resource, requests)
    }

    /// Returns the replicas that bring the average of a metric of Pods to its target. `resource` is empty for a custom
    /// metric.
    ///
    /// # Errors
    /// If there are no Pods or samples.
    pub fn average(&self, samples: Samples, resource: &str, target: i64) -> Result<Usage, String> {
        self.of_samples(samples, resource, || Ok(Measure::Average { target }))
    }

    /// Returns the replicas that bring a value to its target, which is taken to be proportional to the ready Pods.
    ///
    /// # Errors
    /// If there are no Pods.
    pub fn value(&self, value: i64, target: i64) -> Result<Usage, String> {
        let ratio = value as f64 / target as f64;
        let replicas = match self.current {
            // Without Pods there is nothing to be proportional to.
            0 => ceil(ratio),
            _ if self.tolerances.contain(ratio) => self.current,
            _ if self.pods.is_empty() => {
                return Err(format!("unable to calculate ready pods: {NO_PODS}"));
            }
            _ => {
                let ready = self.pods.iter().filter(|pod| pod.is_ready()).count();
                ceil(ratio * ready as f64)
            }
        };
        Ok(Usage {
            replicas,
            value,
            percent: 0,
        })
    }

    /// Returns the replicas that bring a value, divided by the replicas, to its target.
    pub fn value_per_replica(&self, value: i64, target: i64) -> Usage {
        let (total, target) = (value as f64, target as f64);
        let ratio = total / (target * f64::from(self.observed));
        let replicas = match self.tolerances.contain(ratio) {
            true => self.observed,
            false => ceil(total / target),
        };
        let value = match value {
            i64::MAX => value,
            _ => (total / f64::from(self.observed)).ceil() as i64,
        };
        Usage {
            replicas,
            value,
            percent: 0,
        }
    }

    /// Divides the Pods by what their samples mean.
    pub fn group(&self, samples: &Samples, resource: &str) -> Groups<'_> {
        let mut groups = Groups::default();
        for pod in self.pods {
            let name = name(pod);
            match (pod.phase, samples.get(name)) {
                (Phase::Failed, _) => _ = groups.ignored.insert(name),
                _ if pod.meta.deleting => _ = groups.ignored.insert(name),
                (Phase::Pending, _) => _ = groups.unready.insert(name),
                (_, None) => _ = groups.missing.insert(name),
                (_, Some(sample)) if resource == CPU && self.is_starting(pod, sample) => {
                    groups.unready.insert(name);
                }
                _ => groups.ready = groups.ready.saturating_add(1),
            }
        }
        groups
    }

    /// Returns whether the CPU usage of a Pod is that of its start.
    fn is_starting(&self, pod: &PodView, sample: &Sample) -> bool {
        let (Some(readiness), Some(started)) = (pod.readiness, pod.started) else {
            return true;
        };
        let unready = readiness.ready == Some(false);
        let initialized = time::after(started, self.settings.cpu_initialization_period);
        if initialized > self.now {
            // A sample counts once a whole window of it was measured after the last change.
            unready || sample.at < time::after(readiness.since, sample.window)
        } else {
            // It has never been ready.
            unready && time::after(started, self.settings.initial_readiness_delay) > readiness.since
        }
    }

    fn of_samples<'a>(
        &'a self,
        mut samples: Samples,
        resource: &str,
        measure: impl FnOnce() -> Result<Measure<'a>, String>,
    ) -> Result<Usage, String> {
        if self.pods.is_empty() {
            return Err(NO_PODS.to_owned());
        }
        let groups = self.group(&samples, resource);
        samples.retain(|pod, _| {
            !groups.ignored.contains(pod.as_str()) && !groups.unready.contains(pod.as_str())
        });
        if samples.is_empty() {
            let message = "did not receive metrics for targeted pods (pods might be unready)";
            return Err(message.to_owned());
        }
        let measure = measure()?;
        let measured = measure.of(&samples)?;
        Ok(Usage {
            replicas: self.replicas(&measure, measured.ratio, &groups, samples)?,
            value: measured.value,
            percent: measured.percent,
        })
    }

    fn replicas(
        &self,
        measure: &Measure<'_>,
        ratio: f64,
        groups: &Groups<'_>,
        mut samples: Samples,
    ) -> Result<i32, String> {
        let scales_up_with_unready = ratio > 1.0 && !groups.unready.is_empty();
        if !scales_up_with_unready && groups.missing.is_empty() {
            return Ok(match self.tolerances.contain(ratio) {
                true => self.current,
                false => ceil(ratio * groups.ready as f64),
            });
        }
        let mut assume = |pod: &str, value| _ = samples.insert(pod.to_owned(), assumed(value));
        for pod in &groups.missing {
            if ratio < 1.0 {
                assume(pod, measure.at_target(pod));
            } else if ratio > 1.0 {
                assume(pod, 0);
            }
        }
        if scales_up_with_unready {
            groups.unready.iter().for_each(|pod| assume(pod, 0));
        }
        let damped = measure.of(&samples)?.ratio;
        let replicas = ceil(damped * samples.len() as f64);
        let turns = (ratio < 1.0 && damped > 1.0) || (ratio > 1.0 && damped < 1.0);
        let against =
            (damped < 1.0 && replicas > self.current) || (damped > 1.0 && replicas < self.current);
        Ok(match self.tolerances.contain(damped) || turns || against {
            true => self.current,
            false => replicas,
        })
    }
}

const NO_PODS: &str = "no pods returned by selector while calculating replica count";

impl Measure<'_> {
    fn of(&self, samples: &Samples) -> Result<Measured, String> {
        match self {
            Self::Percent { target, requests } => percent(samples, requests, *target),
            Self::Average { target } => {
                let values = samples.values().map(|sample| sample.value);
                let value = average(sum(values), samples.len());
                Ok(Measured {
                    ratio: value as f64 / *target as f64,
                    value,
                    percent: 0,
                })
            }
        }
    }

    /// Returns the usage that a Pod without a sample is assumed to have where there are too many replicas: the target,
    /// and at least all of its request.
    fn at_target(&self, pod: &str) -> i64 {
        match self {
            Self::Percent { target, requests } => {
                let request = requests.get(pod).copied().unwrap_or_default();
                let assumed = i128::from(request).saturating_mul(i128::from(*target.max(&100)));
                saturate(assumed.div_euclid(100))
            }
            Self::Average { target } => *target,
        }
    }
}

/// Compares the usage of Pods with their requests. Samples of unknown Pods do not count.
fn percent(
    samples: &Samples,
    requests: &BTreeMap<&str, i64>,
    target: i32,
) -> Result<Measured, String> {
    let known = samples
        .iter()
        .filter_map(|(pod, sample)| Some((sample.value, *requests.get(pod.as_str())?)));
    let used = sum(known.clone().map(|(used, _)| used));
    let requested = sum(known.clone().map(|(_, requested)| requested));
    let percent = used.saturating_mul(100).checked_div(requested);
    let percent = percent.ok_or("no metrics returned matched known pods")?;
    let percent = i32::try_from(percent).unwrap_or(i32::MAX);
    Ok(Measured {
        ratio: f64::from(percent) / f64::from(target),
        value: average(used, known.count()),
        percent,
    })
}

fn sum(values: impl Iterator<Item = i64>) -> i128 {
    values.map(i128::from).fold(0, i128::saturating_add)
}

fn average(sum: i128, count: usize) -> i64 {
    let count = i128::try_from(count).unwrap_or(i128::MAX);
    saturate(sum.checked_div(count).unwrap_or_default())
}

fn saturate(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Returns a number of replicas, rounded up and within the bounds of its type.
fn ceil(replicas: f64) -> i32 {
    replicas.ceil() as i32
}

fn assumed(value: i64) -> Sample {
    Sample {
        value,
        at: Timestamp::MIN,
        window: std::time::Duration::ZERO,
    }
}

fn name(pod: &Arc<PodView>) -> &str {
    &pod.meta.key.name
}
