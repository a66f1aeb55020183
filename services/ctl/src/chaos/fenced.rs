//! How many writes of former leaders the gateways have refused.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures::future::join_all;
use setpoint_host::probe;
use tokio::time::timeout;

/// The counter, of which there is one for each lease.
const COUNTER: &str = "setpoint_fenced_writes_total";
/// More than a gateway ever tells.
const LONGEST: u64 = 8 << 20;
const PATIENCE: Duration = Duration::from_secs(2);

/// What each gateway has counted since its start. One that does not answer is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fenced(BTreeMap<SocketAddr, u64>);

impl Fenced {
    /// Asks all gateways.
    pub async fn ask(gateways: &[SocketAddr]) -> Self {
        let asked = gateways.iter().map(|gateway| async {
            let answer = timeout(PATIENCE, probe::fetch(*gateway, "/metrics", LONGEST)).await;
            Some((*gateway, sum(&answer.ok()?.ok()?.body)))
        });
        Self(join_all(asked).await.into_iter().flatten().collect())
    }

    /// How many were refused since `former`. A gateway that was started anew has counted from zero.
    pub fn since(&self, former: &Self) -> u64 {
        let grown = self.0.iter().map(|(gateway, now)| {
            let before = former.0.get(gateway).copied().unwrap_or_default();
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
    fn all_leases_count() {
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
