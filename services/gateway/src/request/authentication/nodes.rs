//! Certificates of nodes that name the UID of their Node: they are accepted while there is that Node.
//!
//! The signer of CertificateSigningRequests adds the UID. So the deletion of a Node revokes its certificate: once the
//! watch cache has it, requests are unauthorized, and open connections are closed a moment later, with the watches on
//! them. Certificates
//! without a UID, as those of a local cluster's own agents, are not looked at.

use std::collections::HashMap;

use parking_lot::Mutex;
use setpoint_host::serve::{ConnectionInfo, WeakConnection};
use setpoint_model::Key;
use setpoint_model::users::NODE_PREFIX;
use setpoint_proto::ApiError;
use setpoint_proto::core::Node;
use setpoint_store::cache::{AtLeast, Cache};
use setpoint_tls::PeerIdentity;

use crate::cached::cached;

/// The name and the UID of a Node.
type Identity = (String, String);

/// Checks certificates of nodes, and ends the connections of those whose Nodes are gone.
pub(crate) struct Nodes {
    cache: Cache,
    /// The open connections by the Nodes of their certificates.
    connections: Mutex<HashMap<Identity, Vec<WeakConnection>>>,
}

impl Nodes {
    pub(super) fn new(cache: Cache) -> Self {
        Self {
            cache,
            connections: Mutex::default(),
        }
    }

    /// Checks that the Node exists whose UID a certificate names, if it names one.
    ///
    /// # Errors
    /// Why the certificate is not accepted.
    pub(super) async fn check(
        &self,
        peer: &PeerIdentity,
        connection: Option<&ConnectionInfo>,
    ) -> Result<(), String> {
        let name = peer.name.strip_prefix(NODE_PREFIX);
        let Some(name) = name.filter(|_| !peer.uid.is_empty()) else {
            return Ok(());
        };
        // Before the look: a deletion after it finds the connection.
        if let Some(connection) = connection {
            self.track(&(name.to_owned(), peer.uid.clone()), connection);
        }
        // It may have been created a moment ago, through another gateway.
        for at in [AtLeast::Any, AtLeast::Newest] {
            let exists = self.exists(name, &peer.uid, at).await;
            if exists.map_err(|error| error.message)? {
                return Ok(());
            }
        }
        Err(format!(
            "there is no Node {name:?} with the UID of the certificate"
        ))
    }

    async fn exists(&self, name: &str, uid: &str, at: AtLeast) -> Result<bool, ApiError> {
        let node = cached::<Node>(&self.cache, &Key::new("", name), at).await?;
        Ok(node.is_some_and(|node| node.metadata.uid == uid))
    }

    fn track(&self, node: &Identity, connection: &ConnectionInfo) {
        let mut connections = self.connections.lock();
        let known = connections.entry(node.clone()).or_default();
        if !known.iter().any(|one| one.is(connection)) {
            known.retain(|one| one.upgrade().is_some());
            known.push(connection.downgrade());
        }
    }

    /// Ends the connections with certificates of Nodes that do not exist: those of a name, or all.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn end_revoked(&self, name: Option<&str>) -> Result<(), ApiError> {
        let tracked = {
            let mut connections = self.connections.lock();
            connections.retain(|_, known| known.iter().any(|one| one.upgrade().is_some()));
            let of_name = connections
                .keys()
                .filter(|(node, _)| name.is_none_or(|name| name == node));
            of_name.cloned().collect::<Vec<_>>()
        };
        for node in tracked {
            if !self.exists(&node.0, &node.1, AtLeast::Any).await? {
                let ended = self.connections.lock().remove(&node);
                let ended = ended.unwrap_or_default();
                let open = ended.iter().filter_map(WeakConnection::upgrade);
                open.for_each(|connection| {
                    connection.distrust(format!("the Node {:?} was deleted", node.0))
                });
            }
        }
        Ok(())
    }
}
