//! A version of a group that another server serves.

use std::sync::Arc;

use setpoint_kinds::apiservice::{AVAILABLE, HTTPS, LOCAL, is_resource_metrics};
use setpoint_model::Key;
use setpoint_model::condition::{self, TRUE};
use setpoint_proto::apiregistration::ApiService;

use super::Gateway;
use super::Server;
use super::server::Endpoint;
use crate::outbound::ServiceAddress;

/// Returns what the status says since the version is that of another server.
fn is_available(service: &ApiService) -> bool {
    let condition = condition::get(&service.status.conditions, AVAILABLE);
    condition.is_some_and(|condition| condition.status == TRUE && condition.reason != LOCAL)
}

/// A version of a group that another server serves.
pub(crate) struct Remote {
    /// The name of the APIService.
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    /// The priorities of the group and of the version in discovery, highest first.
    pub(crate) priorities: (i32, i32),
    /// Whether the status says that it is available.
    pub(crate) is_available: bool,
    pub(crate) server: Arc<Server>,
}

impl Remote {
    /// Returns what an APIService says; `None` if it has no Service. The server of `before` is kept if it is the same.
    pub(crate) fn of(
        service: &ApiService,
        before: Option<&Self>,
        gateway: &dyn Gateway,
    ) -> Option<Self> {
        let spec = &service.spec;
        // The core group has a path of its own, and is always served here.
        let of = spec.service.as_ref().filter(|_| !spec.group.is_empty())?;
        let endpoint = Endpoint {
            address: ServiceAddress {
                service: Key::new(&of.namespace, &of.name),
                port: u16::try_from(of.port.unwrap_or(HTTPS)).unwrap_or_default(),
            },
            ca_bundle: (!spec.insecure_skip_tls_verify).then(|| spec.ca_bundle.clone()),
        };
        let same = before.filter(|before| *before.server.endpoint() == endpoint);
        let server = same.map(|before| before.server.clone());
        Some(Self {
            name: service.metadata.name.clone(),
            group: spec.group.clone(),
            version: spec.version.clone(),
            priorities: (spec.group_priority_minimum, spec.version_priority),
            is_available: is_available(service),
            server: server.unwrap_or_else(|| Arc::new(Server::new(endpoint, gateway))),
        })
    }

    /// Returns whether requests go to it. Those for resource metrics, which the gateway has and upstream's does not, go
    /// to a server of an add-on while it is available.
    pub(crate) fn is_used(&self) -> bool {
        self.is_available || !is_resource_metrics(&self.group, &self.version)
    }

    /// Returns the path of its resources.
    pub(crate) fn path(&self) -> String {
        format!("/apis/{}/{}", self.group, self.version)
    }
}
