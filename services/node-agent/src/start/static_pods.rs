//! The static Pods of the agent's node, and their mirror Pods.

use std::sync::Arc;

use setpoint_controller::{QueueHandle, Replica, View as _, runtime};
use setpoint_proto::core;
use setpoint_runtime::{Runtime, Wake};

use super::wake;
use crate::node::static_pods::{ManifestSource, StaticPods};
use crate::node::{Node, Pods};
use crate::settings::Settings;

/// The number of mirror Pods that are reconciled at the same time.
const WORKERS: usize = 4;

/// The static Pods, and what keeps them.
pub struct Manifests {
    /// The Pods.
    pub pods: Arc<StaticPods>,
    /// The mirror Pods to reconcile.
    pub mirrors: QueueHandle,
    source: Option<ManifestSource>,
    node: core::Node,
}

impl Manifests {
    /// Returns the static Pods of a node, once their manifests have been read.
    pub async fn open(replica: &Replica, settings: &Settings, node: &Node, pods: Wake) -> Self {
        let (settings, mirrors) = (&settings.static_pods, QueueHandle::default());
        let pods = StaticPods::new(!settings.is_on(), pods, wake(&mirrors));
        let pods = Arc::new(pods);
        let source = settings
            .is_on()
            .then(|| ManifestSource::new(settings, &node.name, Arc::clone(&pods)));
        let manifests = Self {
            pods,
            mirrors,
            source,
            node: node.subject(),
        };
        if let Some(source) = &manifests.source {
            source.read(&replica.events, &manifests.node).await;
        }
        manifests
    }

    /// Follows the manifests. Does not return.
    pub async fn keep<R: Runtime>(self, replica: &Replica, pods: &Pods<R>) {
        let Some(source) = &self.source else {
            return std::future::pending().await;
        };
        let start = || source.run(&replica.events, &self.node);
        let (tasks, name) = (replica.client.tasks(), &self.node.metadata.name);
        let kept = tasks.supervise("static-pods", name, start);
        tokio::join!(kept, self.decide_when_complete(pods));
    }

    /// Enqueues all Pods once the manifests are known, unless they are: nothing was decided before on what may be
    /// static.
    async fn decide_when_complete<R: Runtime>(&self, pods: &Pods<R>) {
        if self.pods.is_complete() {
            return;
        }
        self.pods.completed().await;
        let of_api = pods.cache.list().into_iter();
        let of_api = of_api.map(|view| view.meta().key.clone());
        let all = pods.runtime.pods().into_iter().chain(of_api);
        all.for_each(|pod| self.pods.changed(&pod));
    }
}

/// Returns the settings of the controller of mirror Pods.
pub fn settings(settings: &Settings) -> runtime::Settings {
    runtime::Settings {
        workers: WORKERS,
        ..settings.controller()
    }
}
