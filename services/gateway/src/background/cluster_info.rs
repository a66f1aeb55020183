//! Publishes the address and the CA of the cluster in the ConfigMap `kube-public/cluster-info`, which everybody may
//! read (upstream: kubeadm). A machine that knows a bootstrap token verifies by its signature that they are those of
//! the cluster with that token.
//!
//! Gateways keep the ConfigMap while it has the label [`MANAGED_BY`] with their name. One without the label is that of
//! an administrator: it is neither changed nor made readable. All gateways of a cluster should publish the same
//! address.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt as _;
use setpoint_codec::{Object, kind_of};
use setpoint_model::Key;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::{ApiError, Reason};
use setpoint_rbac::bootstrap::cluster_info;
use setpoint_tls::Credentials;

use super::attempts::repeat;
use super::bootstrap_roles;
use crate::registry::{
    AtLeast, Filter, Registry, RequestContext, Start, Target, WatchSpec, errors,
};
use crate::write::current::Current;

const NAMESPACE: &str = "kube-public";
const NAME: &str = "cluster-info";
/// The key of the text.
const KUBECONFIG: &str = "kubeconfig";
/// The label of a ConfigMap that gateways keep.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The value of the label, and the manager of the writes.
const MANAGER: &str = "gateway";

impl Registry {
    /// Publishes the address of the cluster for clients and the CAs that these credentials trust, and follows their
    /// change. Does nothing without an address or credentials. Runs until dropped.
    pub async fn publish_cluster_info(&self, credentials: Option<Credentials>, server: &str) {
        match credentials {
            Some(credentials) if !server.is_empty() => {
                self.cache().synced().await;
                let publish = || Box::pin(follow(self, &credentials, server));
                repeat("cluster-info", publish).await;
            }
            _ => std::future::pending().await,
        }
    }
}

/// Restores the ConfigMap whenever it or the CAs have changed, until a watch ends.
async fn follow(
    registry: &Registry,
    credentials: &Credentials,
    server: &str,
) -> Result<(), ApiError> {
    let mut changes = credentials.authority_changes();
    let spec = WatchSpec {
        filter: Filter::all(kind_of::<ConfigMap>(), NAMESPACE),
        start: Start::Now,
        bookmarks: false,
    };
    let mut events = registry.cache().watch(spec).await?;
    loop {
        let text = kubeconfig(server, &credentials.authorities());
        restore(registry, &text).await?;
        loop {
            tokio::select! {
                // The sender is in the credentials.
                _ = changes.changed() => break,
                event = events.next() => match event {
                    None => return Ok(()),
                    Some(event) if event.as_ref().is_ok_and(|event| event.object.key.name != NAME) => {}
                    Some(event) => {
                        event?;
                        break;
                    }
                },
            }
        }
    }
}

/// Creates or corrects the ConfigMap, and lets everybody read it. One that is not kept by gateways stays as it is.
async fn restore(registry: &Registry, text: &str) -> Result<(), ApiError> {
    let (kind, key) = (kind_of::<ConfigMap>(), Key::new(NAMESPACE, NAME));
    let context = RequestContext::of_server().by(MANAGER);
    let cached = registry.cache().get(kind, &key, AtLeast::Any).await?;
    let object = cached.map(|cached| errors::readable(cached.decode()));
    let object = object.transpose()?;
    match object.as_deref().and_then(|one| one.downcast_ref()) {
        None => create(registry, &context, text).await?,
        Some(map) if !is_kept(map) => return Ok(()),
        Some(map) if map.data.get(KUBECONFIG).is_some_and(|has| has == text) => {}
        Some(_) => {
            let target = Target::whole(kind, &key);
            let mut mutate = |old: &Current, slot: &mut Option<Box<dyn Object>>| {
                set(slot.insert(old.object.clone_box()), text);
                Ok(())
            };
            let updated = registry.guaranteed_update(&context, &target, &mut mutate);
            updated.await?;
        }
    }
    if registry.authorizer().rbac().is_some() {
        bootstrap_roles::reconcile(registry, cluster_info::role()).await?;
        bootstrap_roles::reconcile(registry, cluster_info::role_binding()).await?;
    }
    Ok(())
}

async fn create(registry: &Registry, context: &RequestContext, text: &str) -> Result<(), ApiError> {
    let mut map = ConfigMap::default();
    NAME.clone_into(&mut map.metadata.name);
    let label = (MANAGED_BY.to_owned(), MANAGER.to_owned());
    map.metadata.labels.extend([label]);
    map.data.insert(KUBECONFIG.to_owned(), text.to_owned());
    let target = Target::new(kind_of::<ConfigMap>(), NAMESPACE, "", "")?;
    match registry.create(context, &target, Box::new(map)).await {
        // Another gateway has just created it.
        Err(error) if error.reason != Reason::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Sets the text, unless an administrator has taken the ConfigMap over meanwhile. Signatures stay: their controller
/// replaces them.
fn set(object: &mut Box<dyn Object>, text: &str) {
    if let Some(map) = object
        .downcast_mut::<ConfigMap>()
        .filter(|map| is_kept(map))
    {
        map.data.insert(KUBECONFIG.to_owned(), text.to_owned());
    }
}

fn is_kept(map: &ConfigMap) -> bool {
    let label = map.metadata.labels.get(MANAGED_BY);
    label.is_some_and(|value| value == MANAGER)
}

/// Returns a kubeconfig of the cluster without a user, as kubeadm writes it.
fn kubeconfig(server: &str, authorities: &str) -> String {
    format!(
        "apiVersion: v1\n\
         clusters:\n\
         - cluster:\n    certificate-authority-data: {}\n    server: {server}\n  name: \"\"\n\
         contexts: null\n\
         current-context: \"\"\n\
         kind: Config\n\
         users: null\n",
        STANDARD.encode(authorities)
    )
}
