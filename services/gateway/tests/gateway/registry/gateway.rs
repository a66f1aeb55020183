//! A registry over a store in memory, and small objects.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::Value;
use setpoint_codec::Object;
use setpoint_gateway::in_process;
use setpoint_gateway::registry::{
    AtLeast, Filter, ObjectResponse, Registry, RequestContext, Start, Target, Watch, WatchSpec,
};
use setpoint_gateway::verbs::{Deleted, Patch};
use setpoint_proto::apps::{Deployment, ReplicaSet};
use setpoint_proto::core::{Binding, Container, Namespace, Pod, ServiceAccount};
use setpoint_proto::meta::{DeleteOptions, LabelSelector, OwnerReference};
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::{ApiError, EventType, Resource};
use setpoint_store::cache::Settings;
use setpoint_store::contract::FaultyStore;
use setpoint_store::contract::objects::{NAMESPACE, kind};
use setpoint_store::{Memory, Store};
use tokio::time::timeout;

/// A registry over a faulty store, with the namespace [`NAMESPACE`].
pub struct TestGateway {
    pub store: Arc<FaultyStore>,
    pub registry: Arc<Registry>,
}

impl TestGateway {
    pub async fn start() -> Self {
        Self::start_over(Arc::new(Memory::default())).await
    }

    /// Starts over a store.
    pub async fn start_over(store: Arc<dyn Store>) -> Self {
        let gateway = Self::over(store).await;
        let mut namespace = Namespace::default();
        namespace.metadata.name = NAMESPACE.into();
        gateway.create(&namespace).await.unwrap();
        let mut account = ServiceAccount::default();
        account.metadata.name = "default".into();
        // The background tasks may have created it.
        let _ = gateway.create(&account).await;
        gateway
    }

    /// Returns another gateway over the same store, with faults of its own.
    pub async fn another(&self) -> Self {
        Self::over(self.store.clone()).await
    }

    /// Starts over a store with the namespace [`NAMESPACE`].
    pub async fn over(store: Arc<dyn Store>) -> Self {
        let store = FaultyStore::new(store);
        let registry = in_process::registry(store.clone(), Settings::default()).await;
        Self { store, registry }
    }

    pub async fn create<T: Resource + Object>(&self, object: &T) -> Result<T, ApiError> {
        self.create_as(&RequestContext::of_server(), object).await
    }

    pub async fn create_as<T: Resource + Object>(
        &self,
        context: &RequestContext,
        object: &T,
    ) -> Result<T, ApiError> {
        let response = self
            .registry
            .create(context, &target::<T>("", ""), Box::new(object.clone()))
            .await;
        typed(response?)
    }

    pub async fn update<T: Resource + Object>(&self, object: &T) -> Result<T, ApiError> {
        self.update_part("", object).await
    }

    pub async fn update_part<T: Resource + Object>(
        &self,
        part: &str,
        object: &T,
    ) -> Result<T, ApiError> {
        let target = target::<T>(&Resource::meta(object).name, part);
        typed(
            self.registry
                .update(
                    &RequestContext::of_server(),
                    &target,
                    Box::new(object.clone()),
                )
                .await?,
        )
    }

    /// Updates an object with the current resourceVersion.
    pub async fn replace<T: Resource + Object>(&self, object: &T) -> Result<T, ApiError> {
        let mut object = object.clone();
        let stored: T = self.get(&Resource::meta(&object).name).await?;
        let revision = &Resource::meta(&stored).resource_version;
        Resource::meta_mut(&mut object)
            .resource_version
            .clone_from(revision);
        self.update(&object).await
    }

    /// Updates only the status, as controllers do.
    pub async fn report<T: Resource + Object>(&self, object: &T) -> Result<T, ApiError> {
        let target = target::<T>(&Resource::meta(object).name, "status");
        let object = Box::new(object.clone());
        let context = RequestContext::of_server();
        typed(
            self.registry
                .report_status(&context, &target, object)
                .await?,
        )
    }

    pub async fn get<T: Resource>(&self, name: &str) -> Result<T, ApiError> {
        typed(
            self.registry
                .get(
                    &RequestContext::of_server(),
                    &target::<T>(name, ""),
                    AtLeast::Newest,
                )
                .await?,
        )
    }

    pub async fn patch<T: Resource>(
        &self,
        name: &str,
        r#type: Type,
        body: Value,
    ) -> Result<T, ApiError> {
        let patch = Patch {
            r#type,
            body,
            bytes: 0,
            force: false,
            check: |_, _| Ok(Vec::new()),
        };
        typed(
            self.registry
                .patch(&RequestContext::of_server(), &target::<T>(name, ""), &patch)
                .await?,
        )
    }

    pub async fn delete<T: Resource>(
        &self,
        name: &str,
        options: DeleteOptions,
    ) -> Result<Deleted, ApiError> {
        self.registry
            .delete(
                &RequestContext::of_server(),
                &target::<T>(name, ""),
                &options,
            )
            .await
    }

    pub async fn bind(&self, pod: &str, node: &str) -> Result<ObjectResponse, ApiError> {
        let mut binding = Binding::default();
        binding.target.kind = "Node".into();
        binding.target.name = node.into();
        let target = target::<Pod>(pod, "binding");
        self.registry
            .create(&RequestContext::of_server(), &target, Box::new(binding))
            .await
    }

    /// Waits until an object is gone.
    pub async fn gone<T: Resource>(&self, name: &str) {
        self.until::<T>(name, false).await;
    }

    /// Waits until an object is there.
    pub async fn there<T: Resource>(&self, name: &str) {
        self.until::<T>(name, true).await;
    }

    /// Waits for an object in any namespace that meets a condition.
    pub async fn seen<T: Resource>(&self, wanted: impl Fn(&T) -> bool) -> T {
        let mut events = self.watch::<T>(false).await;
        let seen = async {
            loop {
                let event = events.next().await.unwrap().unwrap();
                let object = event.object.decode().unwrap().into_any();
                let object = *object.downcast::<T>().unwrap();
                if event.r#type != EventType::Deleted && wanted(&object) {
                    return object;
                }
            }
        };
        timeout(Duration::from_secs(60), seen)
            .await
            .expect("the condition is met in time")
    }

    /// Watches all objects of a kind, from their current state.
    async fn watch<T: Resource>(&self, bookmarks: bool) -> Watch {
        let spec = WatchSpec {
            filter: Filter::all(kind::<T>(), ""),
            start: Start::Initial(AtLeast::Newest),
            bookmarks,
        };
        let context = RequestContext::of_server();
        self.registry.watch(&context, spec).await.unwrap()
    }

    async fn until<T: Resource>(&self, name: &str, wanted: bool) {
        let mut events = self.watch::<T>(true).await;
        let seen = async {
            let (mut there, mut complete) = (false, false);
            // Before the initial state is complete, absence means nothing.
            while !complete || there != wanted {
                let event = events.next().await.unwrap().unwrap();
                complete |= event.initial_events_end;
                if event.object.key.name == name {
                    there = event.r#type != EventType::Deleted;
                }
            }
        };
        timeout(Duration::from_secs(60), seen)
            .await
            .expect("the condition is met in time");
    }
}

/// Returns the target of an object in [`NAMESPACE`], or of a cluster-scoped one.
pub fn target<T: Resource>(name: &str, part: &str) -> Target {
    let kind = kind::<T>();
    let namespace = if kind.namespaced { NAMESPACE } else { "" };
    Target::new(kind, namespace, name, part).unwrap()
}

/// Returns the object of a response as its own type.
pub fn typed<T: 'static>(response: ObjectResponse) -> Result<T, ApiError> {
    let object = response.into_object()?.into_any().downcast::<T>();
    Ok(*object.expect("the response has the expected kind"))
}

/// Returns a container with the required fields.
pub fn container() -> Container {
    Container {
        name: "web".into(),
        image: "nginx:1.25".into(),
        ..Default::default()
    }
}

/// Returns a Pod with one container.
pub fn pod(name: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = name.into();
    pod.spec.containers.push(container());
    pod
}

/// Returns a Deployment whose Pods have its name as a label.
pub fn deployment(name: &str) -> Deployment {
    let mut web = Deployment::default();
    web.metadata.name = name.into();
    let labels = [("app".to_owned(), name.to_owned())];
    web.spec.selector = Some(LabelSelector {
        match_labels: labels.clone().into(),
        ..Default::default()
    });
    web.spec.template.metadata.labels = labels.into();
    web.spec.template.spec.containers.push(container());
    web
}

/// Returns a ReplicaSet owned by a Deployment.
pub fn replica_set(name: &str, owner: &Deployment) -> ReplicaSet {
    let like = deployment(name).spec;
    let mut set = ReplicaSet::default();
    set.metadata.name = name.into();
    set.metadata.owner_references = vec![OwnerReference {
        api_version: Deployment::API_VERSION.into(),
        kind: Deployment::KIND.into(),
        name: owner.metadata.name.clone(),
        uid: owner.metadata.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }];
    set.spec.selector = like.selector;
    set.spec.template = like.template;
    set
}
