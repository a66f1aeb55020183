//! The target of a request: a kind, and optionally an object and its subresource.

use setpoint_codec::Kind;
use setpoint_model::Key;
use setpoint_proto::{ApiError, Reason};

use super::Subresource;

/// An object or its subresource, or (without a name) a collection.
#[derive(Clone, Debug)]
pub struct Target {
    /// The stored kind of the object.
    pub kind: &'static Kind,
    /// The kind that the request names and the response has: `kind`, or another version of it.
    pub served: &'static Kind,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    /// Empty for a collection, and on creation.
    pub name: String,
    /// The subresource.
    pub subresource: Subresource,
    /// Whether a custom object keeps the version that it is stored in, because the request is about its metadata only.
    pub keeps_version: bool,
}

impl Target {
    /// Returns the target of a request; `subresource` is empty for the whole object.
    ///
    /// # Errors
    /// `NotFound` when the kind has no such subresource, `BadRequest` when the namespace does not fit the scope of the
    /// kind.
    pub fn new(
        kind: &'static Kind,
        namespace: &str,
        name: &str,
        subresource: &str,
    ) -> Result<Self, ApiError> {
        let part = Subresource::parse(subresource)
            .filter(|part| *part == Subresource::None || kind.has_subresource(part.name()))
            .ok_or_else(|| {
                ApiError::new(
                    Reason::NotFound,
                    "the server could not find the requested resource",
                )
            })?;
        if kind.namespaced && namespace.is_empty() {
            let message = "an empty namespace may not be set when a resource name is provided";
            return Err(ApiError::new(Reason::BadRequest, message));
        }
        if !kind.namespaced && !namespace.is_empty() {
            let message = format!("{} are cluster-scoped", kind.resource());
            return Err(ApiError::new(Reason::BadRequest, message));
        }
        Ok(Self {
            kind: kind.stored(),
            served: kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: part,
            keeps_version: false,
        })
    }

    /// Returns the key of the object.
    pub fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    /// Returns the target of the whole object with this key.
    pub fn whole(kind: &'static Kind, key: &Key) -> Self {
        Self {
            kind: kind.stored(),
            served: kind,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            subresource: Subresource::None,
            keeps_version: false,
        }
    }

    /// Returns the object, or the part of it, that a write of this target changes: a scale is in the whole object. All
    /// checks of a write are of this target, whatever the verb.
    pub fn written(&self) -> Self {
        match self.subresource {
            Subresource::Scale => Self::whole(self.served, &self.key()),
            _ => self.clone(),
        }
    }

    /// Returns the target of a request that is about the metadata of the object only.
    #[must_use]
    pub fn keeping_version(self) -> Self {
        Self {
            keeps_version: true,
            ..self
        }
    }

    /// Returns the kind in whose form the request is processed: the stored one or, for custom objects, the version of
    /// the request.
    pub fn form(&self) -> &'static Kind {
        match self.served.is_custom() {
            true => self.served,
            false => self.kind,
        }
    }
}
