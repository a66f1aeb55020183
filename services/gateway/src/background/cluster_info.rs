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
use setpoint_codec::kind_of;
use setpoint_proto::ApiError;
use setpoint_proto::core::ConfigMap;
use setpoint_rbac::bootstrap::cluster_info;
use setpoint_tls::Credentials;

use super::attempts::repeat;
use super::bootstrap_roles;
use super::kept::keep;
use crate::registry::{Filter, Registry, RequestContext, Start, WatchSpec};

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
/// Signatures stay: their controller replaces them.
async fn restore(registry: &Registry, text: &str) -> Result<(), ApiError> {
    let context = RequestContext::of_server().by(MANAGER);
    let kept = keep(registry, &context, NAMESPACE, config_map(text), |map, _| {
        if is_kept(map) {
            map.data.insert(KUBECONFIG.to_owned(), text.to_owned());
        }
    });
    if is_kept(&kept.await?) && registry.authorizer().rbac().is_some() {
        bootstrap_roles::reconcile(registry, cluster_info::role()).await?;
        bootstrap_roles::reconcile(registry, cluster_info::role_binding()).await?;
    }
    Ok(())
}

fn config_map(text: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    NAME.clone_into(&mut map.metadata.name);
    let label = (MANAGED_BY.to_owned(), MANAGER.to_owned());
    map.metadata.labels.extend([label]);
    map.data.insert(KUBECONFIG.to_owned(), text.to_owned());
    map
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
