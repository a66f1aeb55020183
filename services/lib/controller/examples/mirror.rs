//! A whole controller: each ConfigMap with the annotation `example.com/mirror` has a Secret of its name and data.
//!
//! ```sh
//! cargo run --example mirror -- --gateway-address http://127.0.0.1:6443
//! kubectl create configmap greeting --from-literal=text=hello && kubectl annotate configmap greeting example.com/mirror=true
//! kubectl get secret greeting
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use setpoint_controller::runtime::Settings;
use setpoint_controller::{
    Client, Inputs, Owns, Plan, Reader, Receipt, Reconciler, Replica, View, Whole, reference,
};
use setpoint_host::{self as host, Host};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{ConfigMap, Secret};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Resource as _};

/// The view of a ConfigMap.
struct Source {
    meta: Meta,
    data: BTreeMap<String, Vec<u8>>,
}

impl View for Source {
    type Object = ConfigMap;

    fn of(object: ConfigMap) -> Self {
        let data = object.data.into_iter();
        Self {
            meta: Meta::of(&object.metadata),
            data: data.map(|(key, text)| (key, text.into_bytes())).collect(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Owns<Whole<Secret>> for Source {
    /// Secrets that others have created are left alone.
    fn selects(&self, secret: &Whole<Secret>) -> bool {
        secret.meta.is_owned_by(&self.meta.uid)
    }
}

struct World {
    source: Arc<Source>,
    mirror: Option<Arc<Whole<Secret>>>,
}

#[derive(Debug)]
enum Action {
    Create,
    Update,
    Delete,
}

struct Mirrors {
    sources: Reader<Source>,
    secrets: Reader<Whole<Secret>>,
}

impl Reconciler for Mirrors {
    type Object = ConfigMap;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, _: Inputs) -> Option<World> {
        let source = self.sources.get(key)?;
        let mirror = self.secrets.owned_by(&source.meta.uid).into_iter().next();
        Some(World { source, mirror })
    }

    fn meta(world: &World) -> &Meta {
        &world.source.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        let mut plan = Plan::default();
        let wanted = world.source.meta.annotation("example.com/mirror").is_some();
        match (wanted && !world.source.meta.deleting, &world.mirror) {
            (true, None) => plan.step(Action::Create, "the ConfigMap has no mirror"),
            (true, Some(mirror)) if mirror.object.data != secret(world).data => {
                plan.step(Action::Update, "the mirror has other data");
            }
            (false, Some(_)) => plan.step(Action::Delete, "no mirror is wanted"),
            _ => {}
        }
        plan
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        let source = &world.source.meta;
        match action {
            Action::Create => {
                let secret = secret(world);
                let created = client.create_or_take(source, &secret, |_| true).await?;
                Ok(created.receipt())
            }
            Action::Update => Ok(client.update(&secret(world)).await?.receipt()),
            Action::Delete => {
                let deleted = client.delete::<Secret>(&source.key, Default::default(), None);
                Ok(deleted.await?.receipt())
            }
        }
    }
}

/// Returns the Secret as it should be.
fn secret(world: &World) -> Secret {
    let source = &world.source;
    Secret {
        metadata: ObjectMeta {
            owner_references: vec![reference::<ConfigMap>(&source.meta)],
            ..match &world.mirror {
                Some(mirror) => mirror.object.metadata.clone(),
                None => ObjectMeta {
                    namespace: source.meta.key.namespace.clone(),
                    name: source.meta.key.name.clone(),
                    ..ObjectMeta::default()
                },
            }
        },
        data: source
            .data
            .iter()
            .map(|(key, value)| (key.clone(), value.clone().into()))
            .collect(),
        r#type: "Opaque".into(),
        ..Secret::default()
    }
}

async fn start(host: Host, settings: Settings) -> anyhow::Result<()> {
    let replica = Replica::join(host, &settings.gateway, "mirror", ConfigMap::RESOURCE)?;
    let (sources, secrets) = (replica.informer::<Source>(), replica.informer());
    let (owners, reconciler) = (
        sources.reader(),
        Mirrors {
            sources: sources.reader(),
            secrets: secrets.reader(),
        },
    );
    let controller = replica
        .controller(reconciler)
        .for_(sources)
        .owns(secrets, owners);
    replica.run(controller, settings).await
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    host::run("mirror", start).await
}
