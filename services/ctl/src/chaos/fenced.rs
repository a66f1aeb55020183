//! Counts the writes of former leaders that the gateways refused, from their metrics.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use setpoint_host::http_client;
use tokio::time::timeout;

/// The counter of refused writes; one time series per lease.
const COUNTER: &str = "setpoint_fenced_writes_total";
/// Limit for the size of a gateway's metrics.
const MAX_BYTES: usize = 8 << 20;
const TIMEOUT: Duration = Duration::from_secs(2);

/// The count of each gateway since its start. Gateways that do not answer are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fenced(BTreeMap<SocketAddr, u64>);

impl Fenced {
    /// Reads the metrics of all gateways.
    pub async fn fetch(gateways: &[SocketAddr]) -> Self {
        let fetched = gateways.iter().map(|gateway| async move {
            let url = format!("http://{gateway}/metrics");
            let answer = timeout(TIMEOUT, http_client::get(&url, MAX_BYTES)).await;
            Some((*gateway, sum(&answer.ok()?.ok()?.body)))
        });
        Self(join_all(fetched).await.into_iter().flatten().collect())
    }

    /// Returns the number of writes refused since `earlier`. A restarted gateway counts from zero again.
    pub fn since(&self, earlier: &Self) -> u64 {
        let grown = self.0.iter().map(|(gateway, now)| {
            let before = earlier.0.get(gateway).copied().unwrap_or_default();
            now.checked_sub(before).unwrap_or(*now)
        });
        grown.sum()
    }
}

fn sum(metrics: &str) -> u64 {
    let lines = metrics.lines().filter(|line| line.starts_with(COUNTER));
    let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_of_all_leases_are_added() {
        let metrics = "# TYPE setpoint_fenced_writes_total counter\n\
            setpoint_fenced_writes_total{lease=\"a\"} 2\nsetpoint_fenced_writes_total{lease=\"b\"} 3\nother 9\n";
        assert_eq!(sum(metrics), 5);
    }

    #[test]
    fn a_gateway_that_was_restarted_has_counted_from_zero() {
        let gateway = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let before = Fenced([(gateway(1), 7), (gateway(2), 4)].into());
        let now = Fenced([(gateway(1), 2), (gateway(2), 5), (gateway(3), 1)].into());
        assert_eq!(now.since(&before), 2 + 1 + 1);
    }
}
