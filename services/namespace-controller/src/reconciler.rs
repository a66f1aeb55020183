//! The controller: its informers, and its implementation of [`Reconciler`].

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::{
    Client, Controller, Delta, Hosted, Informer, Inputs, ObjectRef, Outcome, Plan, Reader, Receipt,
    Reconciler, Whole,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::core::{Namespace, NamespaceStatus};
use setpoint_proto::{ApiError, Reason, Resource as _};
use setpoint_workload::PodView;

use crate::{Action, Content, Failure, Item, World, act, discovery, plan, status};

/// The reconciler of namespaces that are being deleted.
pub struct Namespaces {
    namespaces: Reader<Whole<Namespace>>,
    memory: Mutex<HashMap<Key, Memory>>,
}

/// The facts about a namespace that are in no cache.
#[derive(Clone, Default)]
struct Memory {
    content: Content,
    undiscovered: Vec<String>,
    failures: BTreeMap<String, Failure>,
}

/// The controller, for processes that host it.
pub const CONTROLLER: Hosted = Hosted {
    name: "namespace-controller",
    resource: Namespace::RESOURCE,
    run: |replica, settings, ()| {
        Box::pin(async move {
            let (namespaces, pods) = (replica.informer(), replica.informer());
            let controller = controller(namespaces, pods, |it| replica.controller(it));
            replica.run(controller, settings).await
        })
    },
};

/// Returns the controller over these informers; `new` makes it of the reconciler.
pub fn controller(
    namespaces: Informer<Whole<Namespace>>,
    pods: Informer<PodView>,
    new: impl FnOnce(Namespaces) -> Controller<Namespaces>,
) -> Controller<Namespaces> {
    let (known, remaining) = (namespaces.reader(), pods.reader());
    let reconciler = Namespaces::new(namespaces.reader());
    new(reconciler)
        .for_those(namespaces, |namespace| namespace.meta.deleting, |_| true)
        .depends_on(pods, move |delta| emptied(&known, &remaining, delta))
}

/// Returns the namespace that has lost its last Pod, if it is being deleted.
fn emptied(
    namespaces: &Reader<Whole<Namespace>>,
    pods: &Reader<PodView>,
    delta: &Delta<PodView>,
) -> Vec<Key> {
    let (Some(old), None) = (&delta.old, &delta.new) else {
        return Vec::new();
    };
    let namespace = &old.meta.key.namespace;
    let key = Key::new("", namespace);
    let is_ending = namespaces
        .get(&key)
        .is_some_and(|found| found.meta.deleting);
    let is_emptied = is_ending && pods.in_namespace(namespace).is_empty();
    is_emptied.then_some(key).into_iter().collect()
}

impl Namespaces {
    /// Returns a reconciler over this cache.
    pub fn new(namespaces: Reader<Whole<Namespace>>) -> Self {
        Self {
            namespaces,
            memory: Mutex::default(),
        }
    }

    /// Reads the content of a namespace, and the API groups that do not answer.
    async fn read(
        &self,
        client: &Client,
        namespace: &Meta,
    ) -> Result<(Content, Vec<String>), ApiError> {
        let undiscovered = discovery::undiscovered(client).await?;
        let content = client.content_of(&namespace.key.name).await?;
        // Read after the content, so that none of it is in another namespace of the same name.
        match client.get::<Namespace>(&namespace.key).await {
            Ok(now) if now.metadata.uid == namespace.uid => {}
            Ok(_) => return Ok((Content::Foreign, undiscovered)),
            Err(error) if error.reason == Reason::NotFound => {
                return Ok((Content::Foreign, undiscovered));
            }
            Err(error) => return Err(error),
        }
        let items = content.into_iter().map(Item::of).collect();
        Ok((Content::Known(items), undiscovered))
    }
}

impl Reconciler for Namespaces {
    type Object = Namespace;
    type World = World;
    type Action = Action;

    fn begin(&self) {
        self.memory.lock().clear();
    }

    /// Reads the content of the namespace.
    async fn fetch(&self, client: &Client, key: &Key, _: Timestamp) {
        let namespace = self.namespaces.get(key);
        let Some(namespace) = namespace.filter(|found| found.meta.deleting) else {
            self.memory.lock().remove(key);
            return;
        };
        let content = self.read(client, &namespace.meta).await;
        let (content, undiscovered) = content.unwrap_or_else(|error| {
            tracing::warn!(%key, %error, "the content of a namespace could not be read");
            (Content::Unread, Vec::new())
        });
        let mut memory = self.memory.lock();
        let known = memory.entry(key.clone()).or_default();
        (known.content, known.undiscovered) = (content, undiscovered);
    }

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        let namespace = self.namespaces.get(key)?;
        let Memory {
            content,
            undiscovered,
            failures,
        } = self.memory.lock().get(key)?.clone();
        Some(World {
            namespace,
            content,
            undiscovered,
            failures,
            now: inputs.now,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.namespace.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        plan(world)
    }

    fn touches(_: &World, action: &Action) -> Option<ObjectRef> {
        match action {
            Action::Delete(item) => Some(item.reference()),
            Action::Finalize => None,
        }
    }

    async fn act(
        &self,
        client: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        act::act(client, world, action).await
    }

    /// Notes the kinds whose objects cannot be deleted.
    fn record(&self, world: &World, action: &Action, result: &Result<Receipt, ApiError>) {
        let Action::Delete(item) = action else { return };
        let mut memory = self.memory.lock();
        let known = memory.entry(world.namespace.meta.key.clone()).or_default();
        match result {
            Ok(_) => _ = known.failures.remove(&item.resource),
            Err(error) => {
                let failure = known.failures.entry(item.resource.clone()).or_default();
                failure.times = failure.times.saturating_add(1);
                failure.message.clone_from(&error.message);
            }
        }
    }

    fn status(world: &World, outcome: &Outcome<Action>) -> Option<NamespaceStatus> {
        status(world, outcome)
    }

    /// It has while it exists: the writes of others that it waits for have no cause of their own.
    fn converged(_: &World) -> bool {
        false
    }
}
