//! Mirror Pods: the objects of the API that show static Pods.

mod plan;

use std::sync::Arc;
use std::time::Duration;

use setpoint_controller::client::Preconditions;
use setpoint_controller::{
    Client, Controller, Informer, Inputs, Outcome, Plan, Reader, Receipt, Reconciler, Replica,
    View as _,
};
use setpoint_kinds::validation::podspec::MIRROR;
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{Node, Pod, PodStatus};
use setpoint_proto::meta::{ObjectMeta, OwnerReference};
use setpoint_proto::{ApiError, Reason, Resource as _};
use setpoint_runtime::Runtime;

use self::plan::{Found, Wanted, World};
use super::HASH;
use crate::node::Pods;
use crate::node::watch::NodeView;
use crate::pod::clients::NodeClients;
use crate::pod::view::{PodView, Source};

pub use self::plan::Action;

/// The delay after a write that failed: without a gateway, there may be many.
const RETRY: Duration = Duration::from_secs(5);
/// The delay after a write that was refused, for example by a quota.
const REFUSED_RETRY: Duration = Duration::from_secs(60);

/// The reconciler of mirror Pods.
pub struct Mirrors<R> {
    pods: Arc<Pods<R>>,
    nodes: Reader<NodeView>,
    clients: NodeClients,
}

/// The observation of one name.
pub struct Observed {
    /// The metadata of the Pod of the API; that of the static Pod if there is none.
    meta: Meta,
    /// The static Pod.
    pod: Option<Arc<PodView>>,
    /// The name and the uid of the node.
    node: (String, String),
    world: World,
}

/// Returns the controller that keeps the mirror Pods of the nodes of this process. It deletes those without a static
/// Pod, whoever has created them, also where no Pods are static: a mirror Pod is not run.
pub fn controller<R: Runtime>(
    replica: &Replica,
    pods: &Arc<Pods<R>>,
    clients: NodeClients,
    informer: Informer<PodView>,
    nodes: Informer<NodeView>,
) -> Controller<Mirrors<R>> {
    let reconciler = Mirrors {
        pods: Arc::clone(pods),
        nodes: nodes.reader(),
        clients,
    };
    let (ours, of_node, all) = (Arc::clone(pods), Arc::clone(pods), Arc::clone(pods));
    let concerned = move |pod: &PodView| {
        let is_static = || ours.static_pods.get(&pod.meta().key).is_some();
        ours.nodes.contains_key(&pod.node) && (pod.source == Source::Mirror || is_static())
    };
    Controller::new("mirror-pods", reconciler, replica.client.clone())
        .decision_log(&replica.decision_log)
        .for_those(informer, concerned, |_| true)
        // A mirror Pod is owned by its node.
        .watches(nodes, move |_| of_node.static_pods.keys())
        .sweeps(move || all.static_pods.keys())
        .unelected()
}

impl<R: Runtime> Reconciler for Mirrors<R> {
    type Object = Pod;
    type World = Observed;
    type Action = Action;

    fn observe(&self, key: &Key, _: Inputs) -> Option<Observed> {
        let pods = &self.pods;
        if !pods.static_pods.is_complete() {
            return None;
        }
        let found = pods.cache.get(key);
        let found = found.filter(|found| pods.nodes.contains_key(&found.node));
        let pod = pods.static_pods.get(key);
        let newest = found.as_ref().or(pod.as_ref())?;
        let node = newest.node.clone();
        let uid = self.nodes.get(&Key::new("", &node));
        let uid = uid.map(|node| node.meta().uid.clone()).unwrap_or_default();
        Some(Observed {
            meta: newest.meta().clone(),
            world: World {
                wanted: pod.as_deref().map(wanted),
                found: found.as_deref().map(found_of),
                is_registered: !uid.is_empty(),
            },
            pod,
            node: (node, uid),
        })
    }

    fn meta(observed: &Observed) -> &Meta {
        &observed.meta
    }

    fn plan(observed: &Observed) -> Plan<Action> {
        plan::plan(&observed.world)
    }

    async fn act(
        &self,
        _: &Client,
        observed: &Observed,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        let (node, meta) = (&observed.node.0, &observed.meta);
        let gateway = self.clients.of(node);
        match (action, &observed.pod) {
            (Action::Create, Some(pod)) => {
                let mirror = mirror_of(pod.pod(), &observed.node.1);
                match gateway.create(&mirror).await {
                    // It was created before, or is another Pod: the cache will tell.
                    Err(error) if error.reason == Reason::AlreadyExists => Ok(Receipt::none()),
                    created => Ok(created?.receipt()),
                }
            }
            (Action::Create, None) => Ok(Receipt::none()),
            (Action::Delete, _) => {
                let uid = Preconditions::uid(&meta.uid);
                match gateway.delete::<Pod>(&meta.key, uid, Some(0)).await {
                    // This Pod is gone and another has its name.
                    Err(error) if error.reason == Reason::Conflict => Ok(Receipt::none()),
                    deleted => Receipt::unless_gone(deleted.map(|written| written.receipt())),
                }
            }
        }
    }

    fn status(observed: &Observed, _: &Outcome<Action>) -> Option<PodStatus> {
        plan::status(&observed.world)
    }

    async fn update_status(
        &self,
        _: &Client,
        observed: &Observed,
        status: PodStatus,
    ) -> Result<Receipt, ApiError> {
        let gateway = self.clients.of(&observed.node.0);
        let meta = &observed.meta;
        gateway.update_status_of::<Pod>(meta, status).await
    }

    fn retry_after(error: &ApiError) -> Option<Duration> {
        match error.reason {
            // It has changed, and the cache will tell soon.
            Reason::Conflict => None,
            Reason::BadRequest | Reason::Forbidden | Reason::Invalid | Reason::NotFound => {
                Some(REFUSED_RETRY)
            }
            _ => Some(RETRY),
        }
    }
}

fn wanted(view: &PodView) -> Wanted {
    Wanted {
        hash: view.meta().uid.clone(),
        ends: view.is_deleting,
        status: view.pod().status,
    }
}

fn found_of(view: &PodView) -> Found {
    let pod = view.pod();
    Found {
        hash: pod.metadata.annotations.get(MIRROR).cloned(),
        is_deleting: view.is_deleting,
        status: pod.status,
    }
}

/// Returns the mirror Pod of a static Pod, owned by its node, which has this uid.
fn mirror_of(pod: Pod, node: &str) -> Pod {
    let owner = OwnerReference {
        api_version: Node::API_VERSION.to_owned(),
        kind: Node::KIND.to_owned(),
        name: pod.spec.node_name.clone(),
        uid: node.to_owned(),
        controller: Some(true),
        ..OwnerReference::default()
    };
    let meta = pod.metadata;
    let mut annotations = meta.annotations;
    let hash = annotations.get(HASH).cloned().unwrap_or_default();
    annotations.insert(MIRROR.to_owned(), hash);
    Pod {
        metadata: ObjectMeta {
            namespace: meta.namespace,
            name: meta.name,
            labels: meta.labels,
            annotations,
            finalizers: meta.finalizers,
            owner_references: vec![owner],
            ..ObjectMeta::default()
        },
        spec: pod.spec,
        ..Pod::default()
    }
}
