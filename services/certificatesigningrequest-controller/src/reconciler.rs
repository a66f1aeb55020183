//! The controller: its informers, and its implementation of [`Reconciler`].

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use setpoint_controller::client::ListOptions;
use setpoint_controller::events::{is_reported, reference};
use setpoint_controller::{
    Client, Controller, Delta, Hosted, Informer, Inputs, Plan, Reader, Receipt, Reconciler,
    Recorder, Replica, Whole, runtime,
};
use setpoint_model::bootstrap_token::{NAMESPACE, secret_name};
use setpoint_model::users::NODE_PREFIX;
use setpoint_model::{Key, Meta};
use setpoint_proto::certificates::CertificateSigningRequest;
use setpoint_proto::core::{Endpoints, Service};
use setpoint_proto::{ApiError, Resource as _};

use crate::token::tokens;
use crate::{
    Action, NodeView, Request, RequestView, Signer, Signing, TokenView, World, act, joining, plan,
    serving,
};

/// Namespace and name of the Service of gateways.
const API: (&str, &str) = ("default", "kubernetes");

/// The reconciler of CertificateSigningRequests.
pub struct Requests {
    /// The requests.
    pub requests: Reader<RequestView>,
    /// The bootstrap tokens.
    pub tokens: Reader<TokenView>,
    /// The Nodes.
    pub nodes: Reader<NodeView>,
    /// The Service of gateways.
    pub services: Reader<Whole<Service>>,
    /// Its Endpoints.
    pub endpoints: Reader<Whole<Endpoints>>,
    /// The settings of the signer.
    pub settings: Arc<Signing>,
    /// The recorder of Events.
    pub events: Recorder,
}

/// The informers of the controller.
pub struct Informers {
    /// The requests.
    pub requests: Informer<RequestView>,
    /// The bootstrap tokens.
    pub tokens: Informer<TokenView>,
    /// The Nodes.
    pub nodes: Informer<NodeView>,
    /// The Service of gateways.
    pub services: Informer<Whole<Service>>,
    /// Its Endpoints.
    pub endpoints: Informer<Whole<Endpoints>>,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted<Signing> = Hosted {
    name: "certificatesigningrequest-controller",
    resource: CertificateSigningRequest::RESOURCE,
    run: |replica, settings, own| Box::pin(run(replica, settings, own)),
};

async fn run(
    replica: Replica,
    settings: runtime::Settings,
    signing: Signing,
) -> anyhow::Result<()> {
    let informers = Informers {
        requests: replica.informer(),
        nodes: replica.informer(),
        ..Informers::of(&replica.client)
    };
    let reconciler = informers.reconciler(signing, replica.events.clone());
    let controller = informers.controller(replica.controller(reconciler));
    replica.run(controller, settings).await
}

impl Informers {
    /// Returns informers by the connection of a client.
    pub fn of(client: &Client) -> Self {
        Self {
            requests: client.informer(),
            tokens: client.informer().only(tokens()),
            nodes: client.informer(),
            services: client.informer().only(of_api()),
            endpoints: client.informer().only(of_api()),
        }
    }

    /// Returns the reconciler over these informers.
    pub fn reconciler(&self, signing: Signing, events: Recorder) -> Requests {
        Requests {
            requests: self.requests.reader(),
            tokens: self.tokens.reader(),
            nodes: self.nodes.reader(),
            services: self.services.reader(),
            endpoints: self.endpoints.reader(),
            settings: Arc::new(signing),
            events,
        }
    }

    /// Returns the controller with all triggers.
    fn controller(self, controller: Controller<Requests>) -> Controller<Requests> {
        let requests = self.requests.reader();
        let by_token = requests.clone();
        controller
            .for_(self.requests)
            .depends_on(self.tokens, move |delta| of_token(&by_token, delta))
            .depends_on(self.nodes, move |delta| of_node(&requests, delta))
            .watches(self.services, |_| None)
            .watches(self.endpoints, |_| None)
    }
}

/// Selects the objects of the Service of gateways.
fn of_api() -> ListOptions {
    let (namespace, name) = API;
    ListOptions {
        namespace: namespace.to_owned(),
        fields: format!("metadata.name={name}"),
        ..ListOptions::default()
    }
}

/// Returns the requests by a token that has changed.
fn of_token(requests: &Reader<RequestView>, delta: &Delta<TokenView>) -> Vec<Key> {
    let changed = delta.new.as_ref().or(delta.old.as_ref());
    let name = changed.map(|token| token.meta.key.name.clone());
    let secret = |request: &RequestView| joining::token_id(&request.spec).map(secret_name);
    keys(requests, |request| secret(request) == name)
}

/// Returns the requests that wait for a Node that has changed, or by whose tokens it may have joined.
fn of_node(requests: &Reader<RequestView>, delta: &Delta<NodeView>) -> Vec<Key> {
    let changed = delta.new.as_ref().or(delta.old.as_ref());
    let name = changed.map(|node| node.meta.key.name.as_str());
    keys(requests, |request| {
        let spec = &request.spec;
        let own = spec.username.strip_prefix(NODE_PREFIX);
        let waits = !request.is_issued && (own == name || request.is_approved());
        waits || joining::token_id(spec).is_some()
    })
}

fn keys(requests: &Reader<RequestView>, concerned: impl Fn(&RequestView) -> bool) -> Vec<Key> {
    let mut keys = Vec::new();
    requests.for_each(|request, _| {
        if concerned(request) {
            keys.push(request.meta.key.clone());
        }
    });
    keys
}

impl Requests {
    /// Returns the Node that a request asks a certificate for, and the IPs that this one may not claim.
    fn node(&self, request: &RequestView) -> (Option<Arc<NodeView>>, BTreeSet<IpAddr>) {
        let signer = Signer::named(&request.spec.signer_name);
        let of_node = [Signer::KubeletClient, Signer::KubeletServing];
        let of_node = signer.filter(|signer| of_node.contains(signer));
        let parsed = of_node.and_then(|_| Request::parse(&request.spec.request).ok());
        let name = parsed.and_then(|parsed| {
            let name = parsed.common_name.strip_prefix(NODE_PREFIX);
            name.map(str::to_owned)
        });
        let node = name.and_then(|name| self.nodes.get(&Key::new("", name)));
        let serving = node
            .as_ref()
            .filter(|_| signer == Some(Signer::KubeletServing));
        let taken = serving.map(|node| self.taken(node)).unwrap_or_default();
        (node, taken)
    }

    fn taken(&self, node: &NodeView) -> BTreeSet<IpAddr> {
        let nodes = self.nodes.list();
        let (services, endpoints) = (self.services.list(), self.endpoints.list());
        let of_service = services.iter().flat_map(|one| &one.object.spec.cluster_ips);
        let subsets = endpoints.iter().flat_map(|one| &one.object.subsets);
        let addresses = subsets.flat_map(|subset| &subset.addresses);
        let of_gateways = addresses.map(|address| &address.ip);
        let [services, gateways] = [of_service.collect::<Vec<_>>(), of_gateways.collect()]
            .map(|ips| ips.into_iter().filter_map(|ip| ip.parse::<IpAddr>().ok()));
        serving::taken(node, nodes.iter().map(|node| &**node), services, gateways)
    }
}

impl Reconciler for Requests {
    type Object = CertificateSigningRequest;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        let request = self.requests.get(key)?;
        let token = joining::token_id(&request.spec);
        let token = token.map(|id| Key::new(NAMESPACE, secret_name(id)));
        let (node, taken) = self.node(&request);
        Some(World {
            token: token.and_then(|key| self.tokens.get(&key)),
            node,
            taken,
            request,
            now: inputs.now,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.request.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, &self.settings, world, action).await
    }

    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        if let (Action::Sign(_) | Action::CreateNode(_), Err(error)) = (action, result)
            && is_reported(error)
        {
            let about = reference::<CertificateSigningRequest>(&world.request.meta);
            self.events
                .warning(&about, "SigningError", error.message.clone());
        }
    }
}
