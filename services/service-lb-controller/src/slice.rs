//! The nodes of the ready endpoints of an EndpointSlice.

use std::collections::BTreeSet;

use setpoint_controller::View;
use setpoint_model::endpointslice::SERVICE_NAME;
use setpoint_model::{Key, Meta};
use setpoint_proto::discovery::{Endpoint, EndpointSlice};

/// An EndpointSlice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SliceView {
    /// The identity.
    pub meta: Meta,
    /// Its Service.
    pub service: Option<Key>,
    /// The names of the nodes of its ready endpoints.
    pub nodes: BTreeSet<Box<str>>,
}

impl View for SliceView {
    type Object = EndpointSlice;

    fn of(slice: EndpointSlice) -> Self {
        let meta = &slice.metadata;
        let service = meta.labels.get(SERVICE_NAME);
        let service = service.map(|name| Key::new(&meta.namespace, name));
        let ready = |endpoint: &&Endpoint| endpoint.conditions.ready.unwrap_or(true);
        let ready = slice.endpoints.iter().filter(ready);
        let nodes = ready.filter_map(|endpoint| endpoint.node_name.as_deref());
        Self {
            meta: Meta::identity(meta),
            service,
            nodes: nodes.map(Box::from).collect(),
        }
    }

    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn tag(&self) -> Option<&str> {
        self.service.as_ref().map(|service| service.name.as_str())
    }
}
