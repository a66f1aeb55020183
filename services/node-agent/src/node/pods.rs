//! The nodes of this process and their Pods, as eviction, shutdown, usage and the services see them.

use std::collections::HashMap;
use std::sync::Arc;

use setpoint_controller::{Reader, View as _};
use setpoint_model::Key;
use setpoint_runtime::{Runtime, Sandbox, Wake};
use tokio::sync::watch;

use super::static_pods::StaticPods;
use super::{Node, NodeState};
use crate::pod::ending::{Ending, Endings};
use crate::pod::view::{PodView, Source};

/// The nodes of this process and their Pods.
pub struct Pods<R> {
    /// Runs the containers of the Pods.
    pub runtime: R,
    /// The nodes of this process, by name.
    pub nodes: HashMap<String, Node>,
    /// The state of the nodes beside their capacity.
    pub state: watch::Sender<NodeState>,
    /// A cache of the Pods of the API. It may hold Pods of other nodes, too, and mirror Pods.
    pub cache: Reader<PodView>,
    /// The Pods that the node runs by itself.
    pub static_pods: Arc<StaticPods>,
    /// The Pods that their node ends.
    pub endings: Arc<Endings>,
    /// Enqueues a Pod for a reconcile.
    pub wake: Wake,
}

impl<R: Runtime> Pods<R> {
    /// Returns whether a Pod is one to run on a node of this process.
    pub fn has(&self, pod: &PodView) -> bool {
        self.nodes.contains_key(&pod.node) && pod.source != Source::Mirror
    }

    /// Returns the Pod of this name. A static Pod comes before one of the API.
    pub fn get(&self, pod: &Key) -> Option<Arc<PodView>> {
        let of_api = || self.cache.get(pod).filter(|view| self.has(view));
        self.static_pods.get(pod).or_else(of_api)
    }

    /// Returns whether a Pod has this uid in the API, where a static Pod is its mirror Pod.
    pub fn is_of_uid(&self, pod: &PodView, uid: &str) -> bool {
        let mirror = || self.cache.get(&pod.meta().key);
        pod.meta().uid == uid
            || pod.is_static() && mirror().is_some_and(|mirror| mirror.meta().uid == uid)
    }

    /// Returns the Pods of all nodes.
    pub fn all(&self) -> impl Iterator<Item = Arc<PodView>> {
        let known = self.cache.list().into_iter();
        let is_static = |view: &PodView| self.static_pods.get(&view.meta().key).is_some();
        let of_api = known.filter(move |view| self.has(view) && !is_static(view));
        of_api.chain(self.static_pods.list())
    }

    /// Returns the Pods of all nodes that have not ended.
    pub fn active(&self) -> impl Iterator<Item = Arc<PodView>> {
        self.all().filter(|view| !view.ended)
    }

    /// Returns the sandbox of the Pod with this uid.
    pub fn sandbox(&self, pod: &Key, uid: &str) -> Option<Sandbox> {
        let sandboxes = self.runtime.sandboxes(pod).into_iter();
        let mut own = sandboxes.filter(|sandbox| sandbox.config.uid == uid);
        own.next()
    }

    /// Returns whether a Pod has not reported its end.
    pub fn is_active(&self, pod: &Key, uid: &str) -> bool {
        let view = self.get(pod);
        view.is_some_and(|view| view.meta().uid == uid && !view.ended)
    }

    /// Ends a Pod whatever its restart policy is.
    pub fn end(&self, pod: &Key, uid: &str, ending: Ending) {
        self.endings.add(uid, ending);
        (self.wake)(pod);
    }
}
