//! The root-ca-certificate-publisher: keeps the CA bundle with which Pods verify the API server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_controller::client::ListOptions;
use setpoint_controller::{
    Client, Controller, Hosted, Informer, Inputs, ObjectRef, Plan, QueueHandle, Reader, Receipt,
    Reconciler, Replica, Whole, runtime,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{ConfigMap, Namespace};
use setpoint_proto::{ApiError, Resource as _};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::{NamespaceView, namespace_of, unless_exists};

const NAME: &str = "kube-root-ca.crt";
const FILE: &str = "ca.crt";
/// The interval of reading the bundle again.
const INTERVAL: Duration = Duration::from_secs(1);
const DESCRIPTION: &str = "kubernetes.io/description";
const DESCRIPTION_OF_CA: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
    endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across \
    distributions of Kubernetes clusters.";

/// The CA bundle in the ConfigMap kube-root-ca.crt of each namespace, as kube-controller-manager's `--root-ca-file`.
/// By default there is none, as for gateways without TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Publishing {
    /// File with the CA bundle that Pods verify the API server with, read again when it changes; empty for none, as
    /// while it serves without TLS.
    pub root_ca_file: PathBuf,
}

impl Publishing {
    /// Reads the bundle.
    ///
    /// # Errors
    /// If the file cannot be read or has no certificate.
    pub fn bundle(&self) -> anyhow::Result<String> {
        let path = &self.root_ca_file;
        if path.as_os_str().is_empty() {
            return Ok(String::new());
        }
        let bundle = std::fs::read_to_string(path);
        let bundle = bundle.with_context(|| format!("reading root_ca_file {}", path.display()))?;
        anyhow::ensure!(
            bundle.contains("-----BEGIN CERTIFICATE-----"),
            "root_ca_file {} has no certificate",
            path.display()
        );
        Ok(bundle)
    }
}

impl setpoint_host::Settings for Publishing {}

/// The reconciler of namespaces.
pub struct Publisher {
    namespaces: Reader<NamespaceView>,
    published: Reader<Whole<ConfigMap>>,
    bundle: watch::Receiver<Arc<str>>,
}

/// Everything that the decision about one namespace depends on.
#[derive(Clone, Debug)]
pub struct World {
    /// The namespace.
    pub namespace: Meta,
    /// The ConfigMap with the bundle, if there is one.
    pub published: Option<Arc<Whole<ConfigMap>>>,
    /// The bundle.
    pub bundle: Arc<str>,
}

/// A write of the ConfigMap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the ConfigMap.
    Create,
    /// Correct the ConfigMap.
    Correct,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted<Publishing> = Hosted {
    name: "root-ca-certificate-publisher-controller",
    resource: Namespace::RESOURCE,
    run: |replica, settings, own| Box::pin(run(replica, settings, own)),
};

async fn run(
    replica: Replica,
    settings: runtime::Settings,
    publishing: Publishing,
) -> anyhow::Result<()> {
    let (sender, bundle) = watch::channel(publishing.bundle()?.into());
    let published = replica.client.informer().only(selection());
    let (namespaces, queue) = (replica.informer(), QueueHandle::default());
    let all = namespaces.reader();
    let controller = controller(namespaces, published, bundle, |it| replica.controller(it));
    let controller = controller.queue(&queue);
    let changed = || {
        all.for_each(|namespace: &NamespaceView, _| queue.add(namespace.meta.key.clone(), None));
    };
    tokio::select! {
        ended = replica.run(controller, settings) => ended,
        () = follow(&publishing, sender, changed) => Ok(()),
    }
}

/// Reads the bundle again until dropped, and calls `changed` when it is another one. A file that cannot be used changes
/// nothing.
pub async fn follow(publishing: &Publishing, bundle: watch::Sender<Arc<str>>, changed: impl Fn()) {
    loop {
        sleep(INTERVAL).await;
        let Ok(read) = publishing.bundle() else {
            continue;
        };
        let is_other = |known: &mut Arc<str>| {
            let is_other = **known != *read;
            if is_other {
                *known = read.as_str().into();
            }
            is_other
        };
        if bundle.send_if_modified(is_other) {
            changed();
        }
    }
}

/// Selects the ConfigMaps that the controller keeps.
pub fn selection() -> ListOptions {
    ListOptions {
        fields: format!("metadata.name={NAME}"),
        ..ListOptions::default()
    }
}

/// Returns the controller over these informers; `new` makes it of the reconciler.
pub fn controller(
    namespaces: Informer<NamespaceView>,
    published: Informer<Whole<ConfigMap>>,
    bundle: watch::Receiver<Arc<str>>,
    new: impl FnOnce(Publisher) -> Controller<Publisher>,
) -> Controller<Publisher> {
    let reconciler = Publisher {
        namespaces: namespaces.reader(),
        published: published.reader(),
        bundle,
    };
    new(reconciler)
        .for_(namespaces)
        .watches(published, |map| Some(namespace_of(&map.meta.key)))
}

/// Plans for one namespace.
pub fn plan(world: &World) -> Plan<Action> {
    let mut plan = Plan::default();
    if world.namespace.deleting {
        return plan;
    }
    match &world.published {
        None => plan.step(Action::Create, "every namespace has the CA bundle"),
        Some(published) if !is_right(&published.object, &world.bundle) => {
            plan.step(Action::Correct, "the CA bundle is another");
        }
        Some(_) => {}
    }
    plan
}

fn data(bundle: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(FILE.to_owned(), bundle.to_owned())])
}

/// Returns whether the data is right and some description is there.
fn is_right(published: &ConfigMap, bundle: &str) -> bool {
    let described = published.metadata.annotations.get(DESCRIPTION);
    published.data == data(bundle) && described.is_some_and(|text| !text.is_empty())
}

/// Returns a ConfigMap with the bundle and its description.
fn with_bundle(mut published: ConfigMap, bundle: &str) -> ConfigMap {
    published.data = data(bundle);
    let annotations = &mut published.metadata.annotations;
    annotations.insert(DESCRIPTION.into(), DESCRIPTION_OF_CA.into());
    published
}

impl Reconciler for Publisher {
    type Object = Namespace;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, _: Inputs) -> Option<World> {
        Some(World {
            namespace: self.namespaces.get(key)?.meta.clone(),
            published: self.published.get(&Key::new(&key.name, NAME)),
            bundle: self.bundle.borrow().clone(),
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.namespace
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(world: &World, _: &Action) -> Option<ObjectRef> {
        let published = Key::new(&world.namespace.key.name, NAME);
        Some(published.in_resource(ConfigMap::RESOURCE))
    }

    /// Corrects the version that was observed.
    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        match (action, &world.published) {
            (Action::Correct, Some(published)) => {
                let corrected = with_bundle(published.object.clone(), &world.bundle);
                let updated = client.update(&corrected).await;
                Receipt::unless_gone(updated.map(|updated| updated.receipt()))
            }
            _ => {
                let mut new = ConfigMap::default();
                new.metadata.namespace.clone_from(&world.namespace.key.name);
                NAME.clone_into(&mut new.metadata.name);
                unless_exists(client.create(&with_bundle(new, &world.bundle)).await)
            }
        }
    }
}
