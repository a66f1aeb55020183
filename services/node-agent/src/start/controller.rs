//! The controller of Pods, with its agent and its informers.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use setpoint_controller::client::ListOptions;
use setpoint_controller::{Client, Controller, Informer, Replica, View as _};
use setpoint_runtime::{Runtime, Wake};
use tokio::sync::watch;

use super::static_pods;
use crate::agent::Agent;
use crate::node::admission::{Admission, PodNetwork};
use crate::node::static_pods::StaticPods;
use crate::node::static_pods::mirror::{self, Mirrors};
use crate::node::watch::{Ranges, Wakes};
use crate::node::{self, Node, NodeState, Pods};
use crate::pod::act::Executor;
use crate::pod::api_server::ApiServer;
use crate::pod::clients::NodeClients;
use crate::pod::cluster_dns::Resolver;
use crate::pod::ending::Endings;
use crate::pod::events::Events;
use crate::pod::view::PodView;
use crate::pod::volumes::{Tokens, Updates};
use crate::settings::Settings;

/// Builds the controller of Pods.
pub struct Builder<'a, R> {
    /// The replica of the agent.
    pub replica: &'a Replica,
    /// The settings of the agent.
    pub settings: &'a Settings,
    /// The nodes of this process.
    pub nodes: &'a [Node],
    /// Runs the containers.
    pub runtime: R,
    /// The API as Pods reach it.
    pub api: ApiServer,
    /// The cluster's DNS as Pods reach it.
    pub dns: Resolver,
    /// Enqueues a Pod.
    pub wake: Wake,
    /// Receives the range of the addresses of Pods.
    pub range: watch::Sender<String>,
    /// The signals that wake the heartbeats, by node.
    pub wakes: Arc<Wakes>,
    /// The Pods that the node runs by itself.
    pub static_pods: Arc<StaticPods>,
}

impl<R: Runtime> Builder<'_, R> {
    /// Returns the controller that runs the agent: woken by changes of Pods and, through its queue, by the runtime. The
    /// other one keeps mirror Pods.
    pub fn controllers(self) -> (Controller<Agent<R>>, Controller<Mirrors<R>>) {
        let (replica, settings) = (self.replica, self.settings);
        let capacities = self.nodes.iter();
        let capacities = capacities.map(|node| (node.name.clone(), node.capacity.clone()));
        let admission = Arc::new(Admission::new(capacities));
        let endings = Arc::new(Endings::default());
        let left = (Arc::clone(&admission), Arc::clone(&endings));
        let informer = informer(&replica.client, self.nodes, left);
        let (known, wakes) = (Arc::clone(&admission), Arc::clone(&self.wakes));
        let ranges = self.ranges(&admission);
        let added = node::watch::informer(&replica.client, self.nodes, known, ranges, wakes);
        let clients = NodeClients::new(replica.client.clone(), self.nodes.len());
        let agent = self.agent(admission, endings, &informer);
        let has_static = settings.static_pods.is_on();
        if has_static {
            agent.hold();
        }
        let controller = replica.controller(agent);
        let pods = Arc::clone(&controller.reconciler().pods);
        let (known, nodes) = (informer.share(), added.share());
        let mirrors = mirror::controller(replica, &pods, clients, known, nodes);
        let (ours, all) = (Arc::clone(&pods), Arc::clone(&pods));
        let controller = controller
            .for_those(informer, move |pod| ours.has(pod), |_| true)
            // Pods are admitted once it is known what others have added to their nodes.
            .watches(added, |_| None)
            // A sandbox may belong to a Pod that no longer exists.
            .sweeps(move || pods.runtime.pods())
            .sweeps(move || all.static_pods.keys())
            .unelected()
            .settings(settings.controller());
        let controller = match has_static {
            true => controller.eager(),
            false => controller,
        };
        (
            controller,
            mirrors.settings(static_pods::settings(settings)),
        )
    }

    /// Returns a function that takes the addresses of Pods from their Node, if Pods have such.
    fn ranges(&self, admission: &Arc<Admission>) -> Ranges {
        let (admission, range) = (Arc::clone(admission), self.range.clone());
        let uses = self.settings.uses_pod_range();
        let gives = self.settings.gives_addresses();
        Arc::new(move |node, text| {
            if let Some(network) = PodNetwork::parse(text).filter(|_| uses) {
                if gives {
                    admission.set_network(node, network);
                }
                range.send_replace(text.to_owned());
            }
        })
    }

    fn agent(
        self,
        admission: Arc<Admission>,
        endings: Arc<Endings>,
        informer: &Informer<PodView>,
    ) -> Agent<R> {
        let (replica, settings) = (self.replica, self.settings);
        let events = settings.writes_events().then(|| replica.events.clone());
        let by_name = self.nodes.iter();
        let by_name = by_name.map(|node| (node.name.clone(), node.clone()));
        let state = NodeState {
            obstacle: self.runtime.network_ready().err(),
            ..NodeState::default()
        };
        Agent {
            executor: Executor {
                runtime: self.runtime.clone(),
                clients: NodeClients::new(replica.client.clone(), self.nodes.len()),
                events: Events::new(events),
                log: settings.log_limits(),
                probes: Arc::default(),
                hooks: Arc::default(),
                wake: Arc::clone(&self.wake),
                tokens: Tokens::default(),
                updates: Updates::default(),
                host_paths: settings.host_paths().to_vec(),
                local_path: self.nodes[0].local_path.clone(),
                api: self.api,
                dns: self.dns,
            },
            admission,
            images: settings.image_commands(),
            knows_api: AtomicBool::new(false),
            takes_range: settings.gives_addresses(),
            pods: Arc::new(Pods {
                runtime: self.runtime,
                nodes: by_name.collect(),
                state: watch::Sender::new(state),
                cache: informer.reader(),
                static_pods: self.static_pods,
                endings,
                wake: self.wake,
            }),
        }
    }
}

/// Returns an informer over the Pods of these nodes: a single node watches only its own Pods, several share one watch
/// over all Pods that are bound. Pods that end or go are released.
fn informer(
    gateway: &Client,
    nodes: &[Node],
    (admission, endings): (Arc<Admission>, Arc<Endings>),
) -> Informer<PodView> {
    let fields = match nodes {
        [node] => format!("spec.nodeName={}", node.name),
        _ => "spec.nodeName!=".to_owned(),
    };
    let only = ListOptions {
        fields,
        ..ListOptions::default()
    };
    let informer = gateway.informer::<PodView>().only(only);
    informer.on_event(move |delta| {
        let left = delta.new.as_ref().is_none_or(|new| new.ended);
        if let Some(old) = delta.old.as_ref().filter(|_| left) {
            admission.release(&old.meta().key, &old.meta().uid);
            endings.forget(&old.meta().uid);
        }
    })
}
