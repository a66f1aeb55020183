//! States of objects that requests cannot make today.

use setpoint_codec::kind_of;
use setpoint_model::Revision;
use setpoint_proto::Resource;
use setpoint_store::Write;

use crate::objects::encoded;
use crate::{Objects, Stored};

impl Objects {
    /// Stores an object as it is, as an earlier version of the gateway may have: without defaults and validation, and
    /// with its uid and times.
    pub fn put<T: Stored>(&mut self, mut object: T) {
        let meta = Resource::meta_mut(&mut object);
        meta.resource_version.clear();
        let name = meta.name.clone();
        meta.namespace = self.namespace_of(kind_of::<T>()).to_owned();
        let (key, current) = (self.key(kind_of::<T>(), &name), self.get::<T>(&name));
        let write = match current {
            Some(current) => {
                let revision = Revision::of(Resource::meta(&current));
                Write::update(key, revision, encoded(&object))
            }
            None => Write::create(key, encoded(&object)),
        };
        self.commit::<T>(write).unwrap();
    }

    /// Changes an object as [`Self::put`] does.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn amend<T: Stored>(&mut self, name: &str, change: impl FnOnce(&mut T)) {
        let mut object = self.get(name).expect("only existing objects are changed");
        change(&mut object);
        self.put(object);
    }

    /// Removes an object, whatever keeps it.
    ///
    /// # Panics
    /// If it does not exist.
    pub fn remove<T: Stored>(&mut self, name: &str) {
        let object: T = self.get(name).expect("only existing objects are removed");
        let revision = Revision::of(Resource::meta(&object));
        let key = self.key(kind_of::<T>(), name);
        self.commit::<T>(Write::delete(key, revision)).unwrap();
    }
}
