//! The port through which admission plugins read other objects: three methods.

#[cfg(test)]
pub(super) mod map;

use std::sync::Arc;

use futures::future::BoxFuture;
use prost::Message;
use setpoint_codec::{Kind, kind_of};
use setpoint_model::Key;
use setpoint_proto::{ApiError, Resource};
use setpoint_store::cache::{AtLeast, Cache, Cached, Filter, Snapshot};
use setpoint_store::{Entry, Store};

use crate::errors;

/// A read that is under way.
pub(crate) type Reading<'a, T> = BoxFuture<'a, Result<T, ApiError>>;

/// A source of objects.
pub(crate) trait Reader: Send + Sync {
    /// Returns an object, not older than asked.
    fn get<'a>(
        &'a self,
        kind: &'static Kind,
        key: &'a Key,
        at: AtLeast,
    ) -> Reading<'a, Option<Arc<Cached>>>;
    /// Returns the objects that a filter selects, not older than asked.
    fn list<'a>(&'a self, filter: &'a Filter, at: AtLeast) -> Reading<'a, Snapshot>;
    /// Returns the entry at a key of the store, past the cache.
    fn newest<'a>(&'a self, key: &'a str) -> Reading<'a, Option<Entry>>;
}

impl dyn Reader + '_ {
    /// Returns an object of the cache, or the newest one if the cache does not have it yet.
    ///
    /// # Errors
    /// Those of the reader; `InternalError` if the object cannot be decoded.
    pub(crate) async fn find<T: Resource + Message + Default>(
        &self,
        key: &Key,
    ) -> Result<Option<T>, ApiError> {
        let kind = kind_of::<T>();
        let found = match self.get(kind, key, AtLeast::Any).await? {
            None => self.get(kind, key, AtLeast::Newest).await?,
            found => found,
        };
        found.map(|cached| decode(&cached)).transpose()
    }

    /// Returns the objects of a kind in a namespace, or in all if that is empty. One that cannot be read is an error.
    ///
    /// # Errors
    /// Those of the reader.
    pub(crate) async fn all<T: Resource>(
        &self,
        namespace: &str,
        at: AtLeast,
    ) -> Result<Vec<Arc<Cached>>, ApiError> {
        let all = Filter::all(kind_of::<T>(), namespace);
        let listed = self.list(&all, at).await?;
        Ok(listed.complete(all.kind())?.items)
    }
}

/// Decodes an object.
///
/// # Errors
/// `InternalError` if it cannot be decoded.
pub(crate) fn decode<T: Message + Default>(cached: &Cached) -> Result<T, ApiError> {
    errors::readable(T::decode(cached.raw.as_ref()))
}

/// The reader of a gateway: the cache and its store.
pub(crate) struct StoreReader {
    pub store: Arc<dyn Store>,
    pub cache: Cache,
}

impl Reader for StoreReader {
    fn get<'a>(
        &'a self,
        kind: &'static Kind,
        key: &'a Key,
        at: AtLeast,
    ) -> Reading<'a, Option<Arc<Cached>>> {
        Box::pin(self.cache.get(kind, key, at))
    }

    fn list<'a>(&'a self, filter: &'a Filter, at: AtLeast) -> Reading<'a, Snapshot> {
        Box::pin(self.cache.list(filter, at))
    }

    fn newest<'a>(&'a self, key: &'a str) -> Reading<'a, Option<Entry>> {
        Box::pin(async move { Ok(self.store.get(key).await?) })
    }
}
