//! The bootstrap-signer-controller: signs the kubeconfig in the ConfigMap `kube-public/cluster-info` by each token that
//! may sign. So a machine that knows a token can verify the address and the CA of a cluster that it reads anonymously.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use setpoint_controller::client::ListOptions;
use setpoint_controller::{
    Client, Controller, Hosted, Informer, Inputs, Plan, Reader, Receipt, Reconciler, Whole,
};
use setpoint_model::bootstrap_token::{self, SECRET, SIGNING, data};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{ConfigMap, Secret};
use setpoint_proto::{ApiError, Resource as _};

use crate::{TokenView, signature, tokens};

const NAMESPACE: &str = "kube-public";
const NAME: &str = "cluster-info";
/// The key of the text that is signed.
const KUBECONFIG: &str = "kubeconfig";
/// The start of the keys of signatures; the id of the token follows.
const PREFIX: &str = "jws-kubeconfig-";

/// The reconciler of the ConfigMap.
pub struct Signer {
    maps: Reader<Whole<ConfigMap>>,
    tokens: Reader<TokenView>,
}

/// Everything that the decision depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The ConfigMap.
    pub map: Arc<Whole<ConfigMap>>,
    /// All tokens.
    pub tokens: Vec<Arc<TokenView>>,
    /// The time.
    pub now: Timestamp,
}

/// A write of the ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Replace the data of the version that was observed.
    Replace(Data),
}

/// The data of a ConfigMap.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Data(pub BTreeMap<String, String>);

/// Writes the keys only, since plans are printed for users.
impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "bootstrap-signer-controller",
    resource: ConfigMap::RESOURCE,
    run: |replica, settings, ()| {
        Box::pin(async move {
            let maps = replica.client.informer().only(selection());
            let tokens = replica.client.informer().only(tokens());
            let controller = controller(maps, tokens, |it| replica.controller(it));
            replica.run(controller, settings).await
        })
    },
};

/// Selects the ConfigMap.
pub fn selection() -> ListOptions {
    ListOptions {
        namespace: NAMESPACE.to_owned(),
        fields: format!("metadata.name={NAME}"),
        ..ListOptions::default()
    }
}

/// Returns the controller over these informers; `new` makes it of the reconciler.
pub fn controller(
    maps: Informer<Whole<ConfigMap>>,
    tokens: Informer<TokenView>,
    new: impl FnOnce(Signer) -> Controller<Signer>,
) -> Controller<Signer> {
    let reconciler = Signer {
        maps: maps.reader(),
        tokens: tokens.reader(),
    };
    new(reconciler)
        .for_(maps)
        .watches(tokens, |_| Some(Key::new(NAMESPACE, NAME)))
}

/// Plans for the ConfigMap.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if world.map.meta.deleting {
        return plan;
    }
    let signing = world.tokens.iter().map(|token| &token.object);
    let signing: Vec<_> = signing.filter(|token| may_sign(token, world.now)).collect();
    let wanted = with_signatures(&world.map.object.data, &signing);
    if wanted != world.map.object.data {
        plan.step(
            Action::Replace(Data(wanted)),
            "tokens or the text have changed",
        );
    }
    let expiries = signing
        .iter()
        .filter_map(|token| bootstrap_token::expiry(token));
    let waits = expiries.map(|time| Duration::try_from(time.duration_since(world.now)));
    plan.look_again_after(waits.flatten());
    plan
}

fn may_sign(token: &Secret, now: Timestamp) -> bool {
    token.metadata.deletion_timestamp.is_none()
        && bootstrap_token::id(token).is_some()
        && !data(token, SECRET).is_empty()
        && data(token, SIGNING) == b"true"
        && !bootstrap_token::has_expired(token, now)
}

/// Returns the data with the signatures of these tokens and no others. Without a text there is none.
fn with_signatures(
    present: &BTreeMap<String, String>,
    tokens: &[&Secret],
) -> BTreeMap<String, String> {
    let others = present.iter().filter(|(key, _)| !key.starts_with(PREFIX));
    let others = others.map(|(key, value)| (key.clone(), value.clone()));
    let signatures = tokens.iter().filter_map(|token| {
        let (text, id) = (present.get(KUBECONFIG)?, bootstrap_token::id(token)?);
        let signed = signature(text, id, data(token, SECRET));
        Some((format!("{PREFIX}{id}"), signed))
    });
    others.chain(signatures).collect()
}

impl Reconciler for Signer {
    type Object = ConfigMap;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        Some(World {
            map: self.maps.get(key)?,
            tokens: self.tokens.in_namespace(bootstrap_token::NAMESPACE),
            now: inputs.now,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.map.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        Action::Replace(Data(data)): &Action,
    ) -> Result<Receipt, ApiError> {
        let mut map = world.map.object.clone();
        map.data.clone_from(data);
        let updated = client.update(&map).await;
        Receipt::unless_gone(updated.map(|updated| updated.receipt()))
    }
}
