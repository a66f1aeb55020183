//! What a request is about: a kind, perhaps an object of it, perhaps a part of that.

use opentelemetry::KeyValue;
use setpoint_codec::Kind;
use setpoint_model::Key;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::keys;
use setpoint_telemetry::{Span, namespace_attribute};

/// A part of an object with rules of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subresource {
    /// The whole object.
    #[default]
    None,
    /// What is observed.
    Status,
    /// How many replicas.
    Scale,
    /// Which node.
    Binding,
}

impl Subresource {
    /// As it stands in a path; empty for the whole object.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Binding => "binding",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let all = [Self::None, Self::Status, Self::Scale, Self::Binding];
        all.into_iter().find(|part| part.name() == name)
    }
}

/// An object or its part, or (without a name) the collection that it belongs to.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its kind.
    pub kind: &'static Kind,
    /// Empty for what lives in no namespace.
    pub namespace: String,
    /// Empty on creation.
    pub name: String,
    /// The part.
    pub subresource: Subresource,
}

impl Target {
    /// Names the object on the current span, by OpenTelemetry's conventions for objects of Kubernetes.
    pub(crate) fn label_span(&self) {
        let span = Span::current();
        if span.is_recording() {
            let name = KeyValue::new(self.kind.traced.as_str(), self.name.clone());
            let namespace = namespace_attribute(&self.namespace);
            span.set_attributes(namespace.into_iter().chain([name]));
        }
    }

    /// The part `subresource` (empty: all) of an object.
    ///
    /// # Errors
    /// `NotFound` when the kind has no such part, `BadRequest` when the namespace is missing or out of place.
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
            let message = format!("{} live in no namespace", kind.resource());
            return Err(ApiError::new(Reason::BadRequest, message));
        }
        Ok(Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: part,
        })
    }

    /// The object's key.
    pub fn key(&self) -> Key {
        Key::new(&self.namespace, &self.name)
    }

    /// Where the object is stored.
    pub(crate) fn path(&self) -> String {
        keys::object(self.kind, &self.key())
    }

    /// The whole object that `key` names.
    pub(crate) fn whole(kind: &'static Kind, key: &Key) -> Self {
        Self {
            kind,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            subresource: Subresource::None,
        }
    }
}
