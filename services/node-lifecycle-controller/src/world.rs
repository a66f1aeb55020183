//! Everything that the decision about one node depends on.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_model::Target;

use crate::health::Signs;
use crate::plan::wants_turn;
use crate::zone::pause;
use crate::{EvictionLimits, Health, Lifecycle, NodeView, Ready, Zones};

/// A node and what is known of it.
#[derive(Clone, Debug)]
pub struct World {
    /// The node.
    pub node: Arc<NodeView>,
    /// Its last signs of life.
    pub signs: Signs,
    /// The time since these were noticed.
    pub silent_for: Duration,
    /// Whether no node of any zone is ready.
    pub outage: bool,
    /// The wait until it may be tainted NoExecute; `None` while the state of its zone forbids it.
    pub turn: Option<Duration>,
    /// Its Pods that are ready, without those that were marked as not ready since its agent does not answer.
    pub ready_pods: Vec<Target>,
    /// The settings.
    pub settings: Arc<Lifecycle>,
    /// The current time.
    pub now: Timestamp,
}

/// The state that decisions about several nodes share.
pub struct Snapshot<'s> {
    pub(crate) zones: Zones,
    pub(crate) health: &'s Health,
    pub(crate) limits: &'s EvictionLimits,
    pub(crate) settings: &'s Arc<Lifecycle>,
    /// The clock of this process.
    pub(crate) clock: Duration,
}

impl Snapshot<'_> {
    /// Returns the worlds of nodes. Of those of a zone that wait for their turn, it is the first one's.
    pub(crate) fn worlds(
        &self,
        nodes: impl IntoIterator<Item = (Arc<NodeView>, Vec<Target>, Timestamp)>,
    ) -> Vec<World> {
        let mut taken = HashSet::new();
        let nodes = nodes.into_iter();
        let worlds = nodes.map(|(node, ready_pods, now)| {
            let mut world = self.world(node, ready_pods, now);
            if wants_turn(&world)
                && world.turn == Some(Duration::ZERO)
                && !taken.insert(world.node.zone.clone())
            {
                world.turn = pause(self.rate(&world.node));
            }
            world
        });
        worlds.collect()
    }

    fn world(&self, node: Arc<NodeView>, ready_pods: Vec<Target>, now: Timestamp) -> World {
        let (signs, silent_for) = self.health.last(&node.meta.key.name, self.clock);
        World {
            outage: self.zones.are_all_down(),
            turn: self.limits.wait(&node.zone, self.rate(&node), self.clock),
            settings: self.settings.clone(),
            node,
            signs,
            silent_for,
            ready_pods,
            now,
        }
    }

    fn rate(&self, node: &NodeView) -> f64 {
        self.zones.rate(&node.zone, self.settings)
    }
}

impl World {
    /// Returns the time for which the agent may still be silent.
    pub fn silence_left(&self) -> Duration {
        let grace = match self.node.ready() {
            Ready::Never => self.settings.startup_grace_period,
            _ => self.settings.monitor_grace_period,
        };
        grace.saturating_sub(self.silent_for)
    }

    /// Returns whether the agent has been silent for as long as it may.
    pub fn is_silent(&self) -> bool {
        self.silence_left().is_zero()
    }
}

#[cfg(test)]
mod tests {
    use setpoint_controller::View as _;
    use setpoint_proto::core::{Node, NodeCondition};

    use super::*;

    fn node(name: &str, zone: &str, ready: &str) -> Arc<NodeView> {
        let mut node = Node::default();
        node.metadata.name = name.into();
        let label = "topology.kubernetes.io/zone".to_owned();
        node.metadata.labels.insert(label, zone.into());
        node.status.conditions.push(NodeCondition {
            r#type: "Ready".into(),
            status: ready.into(),
            ..Default::default()
        });
        Arc::new(NodeView::of(node))
    }

    #[test]
    fn of_the_nodes_of_a_zone_that_wait_the_first_has_its_turn() {
        let nodes = [
            node("a-0", "a", "True"),
            node("a-1", "a", "False"),
            node("a-2", "a", "False"),
            node("b-0", "b", "False"),
        ];
        let snapshot = Snapshot {
            zones: Zones::of(nodes.iter().map(|node| &**node)),
            health: &Health::default(),
            limits: &EvictionLimits::default(),
            settings: &Arc::default(),
            clock: Duration::ZERO,
        };
        let observed = nodes.map(|node| (node, Vec::new(), Timestamp::UNIX_EPOCH));
        let worlds = snapshot.worlds(observed);
        let turns = worlds
            .iter()
            .map(|world| world.turn.map(|turn| turn.as_secs()));
        let expected = [Some(0), Some(0), Some(10), Some(0)];
        assert_eq!(turns.collect::<Vec<_>>(), expected);
        assert!(worlds.iter().all(|world| !world.outage));
    }
}
