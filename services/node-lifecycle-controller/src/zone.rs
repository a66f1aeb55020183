//! The states of zones, and the rates at which nodes are tainted NoExecute.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use crate::{Lifecycle, NodeView, Ready};

/// The number of nodes that are not ready up to which a zone is normal, whatever its size.
const FEW: usize = 2;

/// The state of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneState {
    /// Nearly all of its nodes are ready.
    Normal,
    /// Many of its nodes are not ready.
    Partial,
    /// None of its nodes is ready.
    Full,
}

/// The nodes of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// The number of those that are ready.
    pub ready: usize,
    /// The number of the others.
    pub not_ready: usize,
}

impl Zone {
    /// Returns the state.
    pub fn state(self, threshold: f64) -> ZoneState {
        let all = self.ready.saturating_add(self.not_ready);
        #[expect(clippy::cast_precision_loss, reason = "there are fewer nodes")]
        let part = self.not_ready as f64 / all.max(1) as f64;
        match self {
            Self {
                ready: 0,
                not_ready,
            } if not_ready > 0 => ZoneState::Full,
            Self { not_ready, .. } if not_ready > FEW && part >= threshold => ZoneState::Partial,
            _ => ZoneState::Normal,
        }
    }
}

/// All zones, by name. Nodes that are excluded do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zones(BTreeMap<String, Zone>);

impl Zones {
    /// Counts the nodes of each zone.
    pub fn of<'n>(nodes: impl IntoIterator<Item = &'n NodeView>) -> Self {
        let mut zones = BTreeMap::<_, Zone>::new();
        for node in nodes.into_iter().filter(|node| !node.excluded) {
            let zone = zones.entry(node.zone.clone()).or_default();
            let count = match node.ready() {
                Ready::Yes => &mut zone.ready,
                _ => &mut zone.not_ready,
            };
            *count = count.saturating_add(1);
        }
        Self(zones)
    }

    /// Returns whether no node of any zone is ready. That says more about the way to them than about the nodes.
    pub fn are_all_down(&self) -> bool {
        !self.0.is_empty() && self.0.values().all(|zone| zone.ready == 0)
    }

    /// Returns the number of nodes of a zone that are tainted in a second; 0 for none.
    pub fn rate(&self, zone: &str, settings: &Lifecycle) -> f64 {
        let zone = self.0.get(zone).copied().unwrap_or_default();
        let size = zone.ready.saturating_add(zone.not_ready);
        match zone.state(settings.unhealthy_zone_threshold) {
            ZoneState::Normal | ZoneState::Full => settings.eviction_rate,
            ZoneState::Partial if size > settings.large_cluster_size => {
                settings.secondary_eviction_rate
            }
            ZoneState::Partial => 0.0,
        }
    }
}

/// The times at which a node of each zone was tainted last, by a clock of this process.
#[derive(Debug, Default)]
pub struct EvictionLimits {
    last: HashMap<String, Duration>,
}

impl EvictionLimits {
    /// Returns the wait until one more node may be tainted; `None` if none may be.
    pub fn wait(&self, zone: &str, rate: f64, now: Duration) -> Option<Duration> {
        let pause = pause(rate)?;
        let last = self.last.get(zone);
        Some(last.map_or(Duration::ZERO, |last| {
            last.saturating_add(pause).saturating_sub(now)
        }))
    }

    /// Notes that a node was tainted.
    pub fn tainted(&mut self, zone: &str, now: Duration) {
        self.last.insert(zone.to_owned(), now);
    }
}

/// Returns the time between two nodes; `None` if the rate is 0.
pub(crate) fn pause(rate: f64) -> Option<Duration> {
    (rate > 0.0).then(|| Duration::try_from_secs_f64(rate.recip()).unwrap_or(Duration::MAX))
}
