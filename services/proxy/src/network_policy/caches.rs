//! The caches that the plan is made of.

use std::sync::Arc;

use setpoint_controller::{Informer, Reader, Replica, View};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{NamespaceView, PodView, PolicyView, World};
use crate::NodeView;
use crate::node::is_among;

/// The caches of the objects that the plan depends on.
pub struct Caches {
    policies: Reader<PolicyView>,
    pods: Reader<PodView>,
    namespaces: Reader<NamespaceView>,
    nodes: Reader<NodeView>,
    /// The names of the nodes of this machine, as the setting has them.
    ours: Vec<String>,
}

/// The informers that fill the caches, but for that of Nodes.
pub struct Informers {
    policies: Informer<PolicyView>,
    pods: Informer<PodView>,
    namespaces: Informer<NamespaceView>,
    /// Notified of the first policy.
    any: Arc<Notify>,
}

/// Returns caches, and the informers that fill them. `changed` is notified of changes; those of `nodes` are left to the
/// caller.
pub fn caches(
    replica: &Replica,
    nodes: Reader<NodeView>,
    ours: &[String],
    changed: &Arc<Notify>,
) -> (Caches, Informers) {
    let any = Arc::new(Notify::new());
    let first = Arc::clone(&any);
    let policies = notifying::<PolicyView>(replica, changed).on_event(move |_| first.notify_one());
    let pods = notifying::<PodView>(replica, changed);
    let namespaces = notifying::<NamespaceView>(replica, changed);
    let caches = Caches {
        policies: policies.reader(),
        pods: pods.reader(),
        namespaces: namespaces.reader(),
        nodes,
        ours: ours.to_vec(),
    };
    let informers = Informers {
        policies,
        pods,
        namespaces,
        any,
    };
    (caches, informers)
}

/// Returns an informer that notifies of the changes of views.
fn notifying<V: View + PartialEq>(replica: &Replica, changed: &Arc<Notify>) -> Informer<V> {
    let changed = Arc::clone(changed);
    replica
        .informer::<V>()
        .on_event(move |_| changed.notify_one())
}

impl Informers {
    /// Fills the caches until shutdown. Pods and Namespaces are watched from the first policy on.
    pub async fn run(self, stop: CancellationToken) {
        let others = async {
            self.any.notified().await;
            tokio::join!(
                self.pods.run(stop.clone()),
                self.namespaces.run(stop.clone())
            );
        };
        tokio::join!(self.policies.run(stop.clone()), others);
    }
}

impl Caches {
    /// Returns what the plan depends on, once the caches that it takes are complete.
    pub async fn world(&self) -> World {
        self.policies.synced().await;
        let policies = self.policies.list();
        if policies.is_empty() {
            return World::default();
        }
        tokio::join!(
            self.pods.synced(),
            self.namespaces.synced(),
            self.nodes.synced()
        );
        let nodes = self.nodes();
        World {
            policies,
            pods: self.pods.list(),
            namespaces: self.namespaces.list(),
            nodes: nodes
                .iter()
                .map(|node| node.meta.key.name.as_str().into())
                .collect(),
            ranges: nodes
                .iter()
                .flat_map(|node| &node.pod_ranges)
                .copied()
                .collect(),
        }
    }

    /// Returns the nodes of this machine that are registered.
    pub fn nodes(&self) -> Vec<Arc<NodeView>> {
        let mut nodes = self.nodes.list();
        nodes.retain(|node| is_among(&node.meta.key.name, &self.ours));
        nodes
    }
}
