//! Records: an index of what names and addresses stand for, made of views of API objects.
//!
//! The index shares the views with the caches of the informers, so that an object is in memory once. A change costs
//! work for the object that changed, never for others. The index is a function of the current objects: the order in
//! which their changes arrived leaves no trace.

mod addresses;
mod view;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use setpoint_controller::{Delta, View};
use setpoint_model::Meta;

use addresses::Addresses;
pub use view::{Endpoint, NamespaceView, PodView, Port, Protocol, ServiceView, SliceView, Target};

/// The objects by the names and addresses that questions ask for.
#[derive(Debug, Default, PartialEq)]
pub struct Index {
    namespaces: HashMap<Box<str>, Namespace>,
    cluster_ips: Addresses<ServiceView>,
    endpoints: Addresses<SliceView>,
    pods: Addresses<PodView>,
}

/// A namespace, which may have objects before it is known itself.
#[derive(Debug, Default, PartialEq)]
struct Namespace {
    exists: bool,
    services: HashMap<Box<str>, Entry>,
}

/// A Service and its slices, either of which may be known first.
#[derive(Debug, Default, PartialEq)]
pub struct Entry {
    service: Option<Arc<ServiceView>>,
    slices: Vec<Arc<SliceView>>,
}

impl Entry {
    /// Returns the slices in the order of their names.
    pub fn slices(&self) -> &[Arc<SliceView>] {
        &self.slices
    }

    fn is_empty(&self) -> bool {
        self.service.is_none() && self.slices.is_empty()
    }
}

impl Index {
    /// Returns whether a namespace exists.
    pub fn has_namespace(&self, name: &str) -> bool {
        self.namespaces.get(name).is_some_and(|one| one.exists)
    }

    /// Returns a Service with its slices.
    pub fn service(&self, namespace: &str, name: &str) -> Option<(&ServiceView, &Entry)> {
        let entry = self.namespaces.get(namespace)?.services.get(name)?;
        Some((entry.service.as_deref()?, entry))
    }

    /// Returns the Services that have a cluster IP.
    pub fn services_at(&self, address: IpAddr) -> impl Iterator<Item = &ServiceView> {
        self.cluster_ips.at(address)
    }

    /// Returns the slices that have a ready endpoint with an address.
    pub fn slices_at(&self, address: IpAddr) -> impl Iterator<Item = &SliceView> {
        self.endpoints.at(address)
    }

    /// Returns the Pods that have an address.
    pub fn pods_at(&self, address: IpAddr) -> impl Iterator<Item = &PodView> {
        self.pods.at(address)
    }

    /// Applies a change of a namespace.
    pub fn namespace_changed(&mut self, change: &Delta<NamespaceView>) {
        let Some(view) = change.new.as_ref().or(change.old.as_ref()) else {
            return;
        };
        let name = &view.meta().key.name;
        match &change.new {
            Some(_) => self.namespace(name).exists = true,
            None => {
                self.namespace(name).exists = false;
                self.forget_empty_namespace(name);
            }
        }
    }

    /// Applies a change of a Service.
    pub fn service_changed(&mut self, change: &Delta<ServiceView>) {
        if let Some(old) = &change.old {
            self.cluster_ips.remove(old.cluster_ips(), &old.meta().key);
            self.with_entry(old.meta(), &old.meta().key.name, |entry| {
                entry.service = None
            });
        }
        if let Some(new) = &change.new {
            self.cluster_ips.insert(new.cluster_ips(), new);
            let put = |entry: &mut Entry| entry.service = Some(new.clone());
            self.with_entry(new.meta(), &new.meta().key.name, put);
        }
    }

    /// Applies a change of a slice.
    pub fn slice_changed(&mut self, change: &Delta<SliceView>) {
        if let Some(old) = &change.old {
            self.endpoints.remove(old.addresses(), &old.meta().key);
            self.with_entry(old.meta(), &old.service, |entry| {
                entry
                    .slices
                    .retain(|slice| slice.meta().key != old.meta().key);
            });
        }
        if let Some(new) = &change.new {
            self.endpoints.insert(new.addresses(), new);
            let put = |entry: &mut Entry| {
                let slices = &mut entry.slices;
                match slices.binary_search_by(|slice| slice.meta().key.cmp(&new.meta().key)) {
                    Ok(at) => slices[at] = new.clone(),
                    Err(at) => slices.insert(at, new.clone()),
                }
            };
            self.with_entry(new.meta(), &new.service, put);
        }
    }

    /// Applies a change of a Pod.
    pub fn pod_changed(&mut self, change: &Delta<PodView>) {
        if let Some(old) = &change.old {
            self.pods.remove(old.addresses(), &old.meta().key);
        }
        if let Some(new) = &change.new {
            self.pods.insert(new.addresses(), new);
        }
    }

    fn namespace(&mut self, name: &str) -> &mut Namespace {
        // Not `entry`, which would need a name of its own each time.
        if !self.namespaces.contains_key(name) {
            self.namespaces.insert(name.into(), Namespace::default());
        }
        self.namespaces.get_mut(name).expect("inserted above")
    }

    /// Changes the entry of a Service in the namespace of `meta`, and forgets it if nothing is left.
    fn with_entry(&mut self, meta: &Meta, service: &str, change: impl FnOnce(&mut Entry)) {
        let namespace = self.namespace(&meta.key.namespace);
        if !namespace.services.contains_key(service) {
            namespace.services.insert(service.into(), Entry::default());
        }
        let entry = namespace.services.get_mut(service).expect("inserted above");
        change(entry);
        if entry.is_empty() {
            namespace.services.remove(service);
            self.forget_empty_namespace(&meta.key.namespace);
        }
    }

    fn forget_empty_namespace(&mut self, name: &str) {
        let empty = |one: &Namespace| !one.exists && one.services.is_empty();
        if self.namespaces.get(name).is_some_and(empty) {
            self.namespaces.remove(name);
        }
    }
}
