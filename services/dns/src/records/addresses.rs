//! Objects by their addresses.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use setpoint_controller::View;
use setpoint_model::Key;

/// The objects that have an address, in the order of their keys.
#[derive(Debug, PartialEq)]
pub struct Addresses<V>(HashMap<IpAddr, Vec<Arc<V>>>);

impl<V> Default for Addresses<V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<V: View> Addresses<V> {
    pub fn at(&self, address: IpAddr) -> impl Iterator<Item = &V> {
        let objects = self.0.get(&address).into_iter().flatten();
        objects.map(|object| &**object)
    }

    pub fn insert(&mut self, addresses: impl Iterator<Item = IpAddr>, object: &Arc<V>) {
        for address in addresses {
            // Nearly every address has one object: no room for more.
            let objects = self
                .0
                .entry(address)
                .or_insert_with(|| Vec::with_capacity(1));
            match objects.binary_search_by(|one| one.meta().key.cmp(&object.meta().key)) {
                Ok(at) => objects[at] = object.clone(),
                Err(at) => objects.insert(at, object.clone()),
            }
        }
    }

    pub fn remove(&mut self, addresses: impl Iterator<Item = IpAddr>, key: &Key) {
        for address in addresses {
            let Some(objects) = self.0.get_mut(&address) else {
                continue;
            };
            if let Ok(at) = objects.binary_search_by(|one| one.meta().key.cmp(key)) {
                objects.remove(at);
            }
            if objects.is_empty() {
                self.0.remove(&address);
            }
        }
    }
}
