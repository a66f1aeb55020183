//! Computed kinds: objects that are computed at each read and never stored.

mod metrics;

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use prost::Message;
use setpoint_codec::Kind;
use setpoint_model::Key;
use setpoint_proto::{ApiError, Resource, for_each_computed};
use setpoint_store::cache::Cached;

use crate::registry::Registry;

/// Objects that are being computed.
pub(crate) type Computing<'a, T> = BoxFuture<'a, Result<Vec<T>, ApiError>>;

/// A kind whose objects are computed.
pub(crate) trait Computed: Resource + Message {
    /// Returns the objects of a namespace, or of all if it is empty, in any order. If the scope has a name, objects of
    /// other names may be left out.
    fn read<'a>(registry: &'a Registry, scope: &'a Key) -> Computing<'a, Self>;
}

/// The hook of [`Computed`], for kinds that are known only at run time.
trait Reader: Send + Sync {
    fn read<'a>(
        &self,
        kind: &'static Kind,
        registry: &'a Registry,
        scope: &'a Key,
    ) -> Computing<'a, Arc<Cached>>;
}

struct ReaderOf<T>(PhantomData<fn() -> T>);

impl<T: Computed + 'static> Reader for ReaderOf<T> {
    fn read<'a>(
        &self,
        kind: &'static Kind,
        registry: &'a Registry,
        scope: &'a Key,
    ) -> Computing<'a, Arc<Cached>> {
        let objects = T::read(registry, scope);
        let encoded = async move {
            let objects = objects.await?.into_iter();
            let encoded = objects.map(|object| {
                let key = Key::of(object.meta());
                Arc::new(Cached::computed(kind, key, object.encode_to_vec().into()))
            });
            Ok(encoded.collect())
        };
        encoded.boxed()
    }
}

macro_rules! readers {
    ($($message:path => $name:literal,)*) => {
        /// The readers of all computed kinds, by the full name of their message.
        static READERS: LazyLock<HashMap<&str, &dyn Reader>> = LazyLock::new(|| {
            HashMap::from([$((
                $name,
                &ReaderOf::<$message>(PhantomData) as &dyn Reader,
            )),*])
        });
    };
}
for_each_computed!(readers);

/// Returns the objects of a computed kind in a scope, in the order of their keys.
///
/// # Errors
/// When they cannot be computed.
pub(crate) async fn read(
    kind: &'static Kind,
    registry: &Registry,
    scope: &Key,
) -> Result<Vec<Arc<Cached>>, ApiError> {
    let Some(reader) = READERS.get(kind.message.full_name()) else {
        return Ok(Vec::new());
    };
    let mut objects = reader.read(kind, registry, scope).await?;
    objects.sort_by(|one, other| one.key.cmp(&other.key));
    Ok(objects)
}
