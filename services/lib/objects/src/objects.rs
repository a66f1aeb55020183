//! [`Objects`]: the verbs that write.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use setpoint_codec::{Object, envelope, kind_of};
use setpoint_kinds::validation::metadata;
use setpoint_kinds::{StoredKind, Subresource, create, delete, update};
use setpoint_model::{Key, Meta, Revision, Target};
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_store::{Error, Memory, Store as _, Write, keys};

use crate::Past;

/// A message of a kind that is stored.
pub trait Stored: Resource + StoredKind {}
impl<T: Resource + StoredKind> Stored for T {}

/// The objects of one namespace and those without one.
///
/// The same calls give the same objects: time is that of the test, and uids are numbered.
pub struct Objects {
    /// The time of all writes.
    pub now: Timestamp,
    pub(crate) namespace: String,
    pub(crate) store: Memory,
    /// The decoded objects, by the revision that wrote them.
    pub(crate) decoded: RefCell<BTreeMap<Revision, Arc<dyn Any + Send + Sync>>>,
    created: u64,
    writes_left: Option<usize>,
}

impl Objects {
    /// Returns a server without objects; reads and writes are of this namespace.
    pub fn new(namespace: &str, now: Timestamp) -> Self {
        Self {
            now,
            namespace: namespace.to_owned(),
            store: Memory::default(),
            decoded: RefCell::default(),
            created: 0,
            writes_left: None,
        }
    }

    /// Lets all writes after this number fail, as those of a controller that has crashed; `None` for none.
    pub fn crash_after(&mut self, writes: Option<usize>) {
        self.writes_left = writes;
    }

    /// Returns whether no write is left before the crash.
    pub fn has_crashed(&self) -> bool {
        self.writes_left == Some(0)
    }

    /// Returns the revision of the last write.
    pub fn revision(&self) -> Revision {
        at_once(self.store.revision()).unwrap()
    }

    /// Returns the objects as a cache shows them that has reached this revision.
    pub fn as_of(&self, revision: Revision) -> Past<'_> {
        Past::new(self, revision)
    }

    /// Returns the newest objects.
    pub fn newest(&self) -> Past<'_> {
        self.as_of(self.revision())
    }

    /// Returns the newest version of an object.
    pub fn get<T: Stored>(&self, name: &str) -> Option<T> {
        self.newest().get(name)
    }

    /// Returns the newest objects of a kind, by name.
    pub fn list<T: Stored>(&self) -> Vec<Arc<T>> {
        self.newest().list()
    }

    /// Creates an object.
    ///
    /// # Errors
    /// `AlreadyExists`, `Invalid`.
    pub fn create<T: Stored>(&mut self, mut object: T) -> Result<T, ApiError> {
        let target = self.target::<T>(&Resource::meta(&object).name, Subresource::None);
        let meta = Resource::meta_mut(&mut object);
        metadata::prepare_create(meta, &target, self.now)?;
        self.created += 1;
        meta.uid = format!("00000000-0000-4000-8000-{:012}", self.created);
        create::prepare(&target, &mut object);
        create::validate(&target, &mut object)?;
        let write = Write::create(keys::object(target.kind, &target.key()), encoded(&object));
        self.commit::<T>(write)?;
        Ok(self.get(&target.name).expect("it was created"))
    }

    /// Replaces an object, except its status. A uid and a resourceVersion in it are preconditions.
    ///
    /// # Errors
    /// `Conflict` if a precondition fails, `NotFound`, `Invalid`.
    pub fn update<T: Stored>(&mut self, object: T) -> Result<(), ApiError> {
        self.replace(object, Subresource::None)
    }

    /// Replaces an object's status and nothing else: metadata and status of `object` are enough.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn update_status<T: Stored>(&mut self, object: T) -> Result<(), ApiError> {
        self.replace(object, Subresource::Status)
    }

    /// Replaces the status of the version that was observed.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn update_status_of<T: Stored>(
        &mut self,
        seen: &Meta,
        status: T::Status,
    ) -> Result<(), ApiError> {
        let mut object = T::default();
        *Resource::meta_mut(&mut object) = seen.precondition();
        object.set_status(status);
        self.update_status(object)
    }

    /// Changes an object in all its parts, as users and other components do: the object itself, and then its status.
    ///
    /// # Panics
    /// If it does not exist, or the change is refused.
    pub fn edit<T: Stored>(&mut self, name: &str, change: impl FnOnce(&mut T)) {
        let mut new: T = self.get(name).expect("only existing objects are changed");
        change(&mut new);
        let meta = Resource::meta_mut(&mut new);
        meta.resource_version.clear();
        self.update(new.clone()).unwrap();
        if kind_of::<T>().has_subresource("status") && self.get::<T>(name).is_some() {
            self.update_status(new).unwrap();
        }
    }

    /// Changes the version of an object that was observed.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn change_unchanged<T: Stored>(
        &mut self,
        seen: &Target,
        change: impl FnOnce(&mut T),
    ) -> Result<(), ApiError> {
        let mut new: T = self.existing(&seen.key.name)?;
        change(&mut new);
        let meta = Resource::meta_mut(&mut new);
        meta.uid.clone_from(&seen.uid);
        meta.resource_version = seen.revision.to_string();
        self.update(new)
    }

    /// Assigns a Pod to a node, as the scheduler does.
    ///
    /// # Errors
    /// `Conflict` if it is assigned already, `NotFound`.
    pub fn bind<T: Stored>(&mut self, name: &str, node: &str) -> Result<(), ApiError> {
        let old: T = self.existing(name)?;
        let mut new = old.clone();
        new.bind(node, self.now)
            .map_err(|why| ApiError::new(Reason::Conflict, why))?;
        self.store(&old, new)
    }

    fn replace<T: Stored>(&mut self, mut new: T, part: Subresource) -> Result<(), ApiError> {
        let target = self.target::<T>(&Resource::meta(&new).name, part);
        let old: T = self.existing(&target.name)?;
        let (meta, current) = (Resource::meta_mut(&mut new), Resource::meta(&old));
        check::<T>(current, &meta.uid, &meta.resource_version)?;
        if part == Subresource::Status {
            metadata::keep_unset(meta, current);
        }
        update::prepare(&target, &old, &mut new)?;
        update::validate(&target, &old, &mut new)?;
        self.store(&old, new)
    }

    /// Commits a change of the current object, which is removed if its deletion is complete. What is not changed is not
    /// written.
    pub(crate) fn store<T: Stored>(&mut self, old: &T, mut new: T) -> Result<(), ApiError> {
        let meta = Resource::meta(old);
        let (revision, key) = (Revision::of(meta), self.key(kind_of::<T>(), &meta.name));
        Resource::meta_mut(&mut new)
            .resource_version
            .clone_from(&meta.resource_version);
        if delete::is_complete(&new) {
            return self.commit::<T>(Write::delete(key, revision));
        }
        if new == *old {
            return Ok(());
        }
        Resource::meta_mut(&mut new).resource_version.clear();
        self.commit::<T>(Write::update(key, revision, encoded(&new)))
    }

    pub(crate) fn commit<T: Stored>(&mut self, write: Write) -> Result<(), ApiError> {
        if let Some(left) = &mut self.writes_left {
            let crashed = || ApiError::new(Reason::ServiceUnavailable, "the controller crashed");
            *left = left.checked_sub(1).ok_or_else(crashed)?;
        }
        let key = write.key.clone();
        match at_once(self.store.commit(write)) {
            // Others come in between neither read and commit of an update nor of a deletion.
            Err(Error::Conflict { .. }) => Err(ApiError::new(
                Reason::AlreadyExists,
                format!("{} {key} already exists", T::KIND),
            )),
            committed => {
                committed.expect("there are no fences and preconditions");
                Ok(())
            }
        }
    }

    pub(crate) fn existing<T: Stored>(&self, name: &str) -> Result<T, ApiError> {
        let message = || format!("{} {name} not found", T::KIND);
        let object = self.get(name);
        object.ok_or_else(|| ApiError::new(Reason::NotFound, message()))
    }

    fn target<T: Stored>(&self, name: &str, part: Subresource) -> setpoint_kinds::Target {
        let kind = kind_of::<T>();
        let key = Key::new(self.namespace_of(kind), name);
        setpoint_kinds::Target {
            subresource: part,
            ..setpoint_kinds::Target::whole(kind, &key)
        }
    }

    pub(crate) fn namespace_of(&self, kind: &setpoint_codec::Kind) -> &str {
        if kind.namespaced { &self.namespace } else { "" }
    }

    pub(crate) fn key(&self, kind: &setpoint_codec::Kind, name: &str) -> String {
        keys::object(kind, &Key::new(self.namespace_of(kind), name))
    }
}

/// Returns the output of a future of the store in memory, which never waits.
pub(crate) fn at_once<T>(future: BoxFuture<'_, T>) -> T {
    future.now_or_never().expect("it does not wait")
}

pub(crate) fn encoded(object: &dyn Object) -> Bytes {
    envelope::of_object(object, &object.encode(), None)
}

/// Checks the preconditions of a write; empty ones hold.
pub(crate) fn check<T: Resource>(
    current: &ObjectMeta,
    uid: &str,
    revision: &str,
) -> Result<(), ApiError> {
    let holds = |wanted: &str, current: &str| wanted.is_empty() || wanted == current;
    if holds(uid, &current.uid) && holds(revision, &current.resource_version) {
        return Ok(());
    }
    let message = format!("{} {} has changed", T::KIND, current.name);
    Err(ApiError::new(Reason::Conflict, message))
}
