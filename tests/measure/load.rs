//! A load test: many concurrent callers for a fixed time.

use std::time::{Duration, Instant};

use futures::future::{BoxFuture, join_all};

/// The result of a load test.
pub struct Load {
    /// Calls per second.
    pub rate: f64,
    /// All calls, those of the warm-up included.
    calls: usize,
    latencies: Vec<Duration>,
}

impl Load {
    /// Returns the latency below which `share` of the calls stayed, in milliseconds.
    pub fn percentile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let index = (last as f64 * share) as usize;
        let latency = self.latencies.get(index).copied().unwrap_or_default();
        latency.as_secs_f64() * 1000.0
    }

    /// Returns the microseconds for a call, if so much time was `spent` from the start of the load to its end.
    pub fn per_call(&self, spent: Duration) -> f64 {
        spent.as_secs_f64() * 1e6 / self.calls as f64
    }
}

/// Calls `call(caller, n)` repeatedly from `callers` tasks for `seconds`, after a tenth of that to warm up.
pub async fn run(
    callers: usize,
    seconds: f64,
    call: impl Fn(usize, u64) -> BoxFuture<'static, anyhow::Result<()>> + Clone + Send + 'static,
) -> anyhow::Result<Load> {
    let warm = Instant::now() + Duration::from_secs_f64(seconds / 10.0);
    let end = warm + Duration::from_secs_f64(seconds);
    let tasks = (0..callers).map(|caller| tokio::spawn(one(caller, warm, end, call.clone())));
    let (mut latencies, mut calls) = (Vec::new(), 0);
    for task in join_all(tasks).await {
        let (warmed, all) = task??;
        latencies.extend(warmed);
        calls += all;
    }
    latencies.sort_unstable();
    let rate = latencies.len() as f64 / seconds;
    Ok(Load {
        rate,
        calls,
        latencies,
    })
}

/// Returns the latencies of a caller after its warm-up, and the number of all of its calls.
async fn one(
    caller: usize,
    warm: Instant,
    end: Instant,
    call: impl Fn(usize, u64) -> BoxFuture<'static, anyhow::Result<()>>,
) -> anyhow::Result<(Vec<Duration>, usize)> {
    let (mut latencies, mut calls) = (Vec::new(), 0);
    for n in 0.. {
        let start = Instant::now();
        if start > end {
            break;
        }
        call(caller, n).await?;
        calls += 1;
        if start > warm {
            latencies.push(start.elapsed());
        }
    }
    Ok((latencies, calls))
}
