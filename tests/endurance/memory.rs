//! Memory and CPU of all processes over the time of the soak.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use setpoint_tests::usage::{cpu, memory};

/// The share by which the memory at the end may exceed that at one quarter of the time.
const GROWTH: f64 = 0.25;
/// Growth that is always allowed, in MiB: less than a burst of a list costs.
const SLACK: f64 = 8.0;

/// The shortest time after which memory is judged: before that, caches and heaps are still filling.
const JUDGED: Duration = Duration::from_secs(600);

#[derive(Clone, Copy)]
struct Sample {
    at: Duration,
    pid: u32,
    mib: f64,
}

#[derive(Default)]
struct Series {
    samples: Vec<Sample>,
    /// CPU time of the processes of this name that have ended.
    ended: Duration,
    /// CPU time of the current one.
    current: Duration,
}

/// The samples of all processes, by name.
#[derive(Default)]
pub struct Memory {
    series: BTreeMap<String, Series>,
}

/// The figures of a process. Memory is in MiB.
#[derive(Debug, PartialEq, Serialize)]
pub struct Figures {
    pub process: String,
    pub at_quarter: f64,
    pub at_half: f64,
    pub at_end: f64,
    pub peak: f64,
    /// Growth in the second half, in MiB an hour, of the process that ran at the end.
    pub slope: f64,
    /// Whether one process ran from one quarter of the time to its end, so that its memory can be judged.
    pub survived: bool,
    pub restarts: usize,
    pub cpu_seconds: f64,
}

impl Memory {
    /// Adds a sample of a process; none if it does not run.
    pub fn sample(&mut self, name: &str, pid: u32, at: Duration) {
        let bytes = memory(pid);
        if bytes > 0 {
            let mib = bytes as f64 / f64::from(1 << 20);
            self.add(name, Sample { at, pid, mib }, cpu(pid));
        }
    }

    fn add(&mut self, name: &str, sample: Sample, cpu: Duration) {
        let series = self.series.entry(name.to_owned()).or_default();
        if series
            .samples
            .last()
            .is_some_and(|last| last.pid != sample.pid)
        {
            series.ended += series.current;
        }
        series.current = cpu;
        series.samples.push(sample);
    }

    /// Returns what is wrong with the memory of the processes over a time; nothing if it is short.
    pub fn problems(figures: &[Figures], total: Duration) -> Vec<String> {
        let judged = figures.iter().filter(|_| total >= JUDGED);
        judged.filter_map(Figures::problem).collect()
    }

    /// Returns the figures of all processes over a time.
    pub fn figures(&self, total: Duration) -> Vec<Figures> {
        let series = self.series.iter();
        series
            .map(|(name, series)| series.figures(name, total))
            .collect()
    }
}

impl Series {
    fn figures(&self, name: &str, total: Duration) -> Figures {
        let until = |share: f64| {
            let mut earlier = self.samples.iter().rev();
            earlier.find(|sample| sample.at <= total.mul_f64(share))
        };
        let mib = |share| until(share).map_or(0.0, |sample| sample.mib);
        let pid = |share| until(share).map(|sample| sample.pid);
        let restarts = self
            .samples
            .windows(2)
            .filter(|pair| pair[0].pid != pair[1].pid);
        let second_half = |sample: &&Sample| sample.at >= total / 2 && Some(sample.pid) == pid(1.0);
        Figures {
            process: name.to_owned(),
            at_quarter: mib(0.25),
            at_half: mib(0.5),
            at_end: mib(1.0),
            peak: self
                .samples
                .iter()
                .fold(0.0, |peak, sample| sample.mib.max(peak)),
            slope: slope(self.samples.iter().filter(second_half)),
            survived: pid(0.25).is_some() && pid(0.25) == pid(1.0),
            restarts: restarts.count(),
            cpu_seconds: (self.ended + self.current).as_secs_f64(),
        }
    }
}

impl Figures {
    /// Returns what is wrong with the memory of a process, if it can be judged. etcd keeps its history in memory, and
    /// is not ours.
    fn problem(&self) -> Option<String> {
        let limit = self.at_quarter * (1.0 + GROWTH) + SLACK;
        let grew = self.survived && self.process != "etcd-0" && self.at_end > limit;
        let Self {
            process,
            at_quarter,
            at_end,
            slope,
            ..
        } = self;
        grew.then(|| {
            format!(
                "the memory of {process} grew from {at_quarter:.1} MiB at one quarter to {at_end:.1} MiB ({slope:.1} MiB/h); at most {limit:.1} MiB is flat"
            )
        })
    }
}

/// Returns the slope of the least squares line in MiB an hour; 0 for fewer than two samples.
fn slope<'a>(samples: impl Iterator<Item = &'a Sample>) -> f64 {
    let points: Vec<_> = samples
        .map(|sample| (sample.at.as_secs_f64() / 3600.0, sample.mib))
        .collect();
    let count = points.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let joint: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    if spread > 0.0 { joint / spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(mib: impl Fn(u64) -> f64, pid: impl Fn(u64) -> u32) -> Figures {
        let mut memory = Memory::default();
        for second in 0..=100 {
            let sample = Sample {
                at: Duration::from_secs(second),
                pid: pid(second),
                mib: mib(second),
            };
            memory.add("gateway-0", sample, Duration::from_secs(second));
        }
        memory.figures(Duration::from_secs(100)).remove(0)
    }

    #[test]
    fn growth_after_the_first_quarter_is_a_problem() {
        let flat = figures(|second| 50.0 + (second.min(20) as f64), |_| 1);
        assert_eq!((flat.problem(), flat.slope.round()), (None, 0.0));
        let leaking = figures(|second| 50.0 + second as f64, |_| 1);
        assert!(
            leaking
                .problem()
                .is_some_and(|text| text.contains("150.0 MiB"))
        );
        assert_eq!(leaking.slope.round(), 3600.0);
    }

    #[test]
    fn a_restarted_process_is_not_judged_and_its_cpu_time_is_added() {
        let restarted = figures(|second| second as f64, |second| u32::from(second > 50));
        assert_eq!((restarted.survived, restarted.restarts), (false, 1));
        assert_eq!(restarted.problem(), None);
        assert_eq!(restarted.cpu_seconds, 150.0);
    }
}
