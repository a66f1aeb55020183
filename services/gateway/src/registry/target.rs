//! The target of a request: a kind, and optionally an object and its subresource.

use opentelemetry::KeyValue;
use setpoint_codec::Kind;
use setpoint_model::Key;
use setpoint_proto::{ApiError, Reason};
use setpoint_store::keys;
use setpoint_telemetry::{Span, namespace_attribute};

/// A subresource of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subresource {
    /// The whole object.
    #[default]
    None,
    /// The observed state.
    Status,
    /// The number of replicas.
    Scale,
    /// The assignment of a Pod to a node.
    Binding,
    /// The deletion of a Pod within its disruption budget.
    Eviction,
    /// The issue of a token for a ServiceAccount.
    Token,
    /// The approval of a CertificateSigningRequest.
    Approval,
    /// The finalizers in the spec of a Namespace.
    Finalize,
    /// The containers for debugging that are added to a running Pod.
    EphemeralContainers,
    /// The resources of the containers of a Pod.
    Resize,
    /// A command in a container.
    Exec,
    /// The process of a container.
    Attach,
    /// The ports of a Pod.
    PortForward,
    /// HTTP to a Pod, a Service or a node.
    Proxy,
}

impl Subresource {
    /// Returns its name in a URL; empty for the whole object.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Binding => "binding",
            Self::Eviction => "eviction",
            Self::Token => "token",
            Self::Approval => "approval",
            Self::Finalize => "finalize",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Resize => "resize",
            Self::Exec => "exec",
            Self::Attach => "attach",
            Self::PortForward => "portforward",
            Self::Proxy => "proxy",
        }
    }

    /// Returns whether it is a request or a connection, not a part of the object.
    pub(crate) const fn is_request(self) -> bool {
        use Subresource::{Attach, Binding, Eviction, Exec, PortForward, Proxy, Token};
        matches!(
            self,
            Binding | Eviction | Token | Exec | Attach | PortForward | Proxy
        )
    }

    /// Returns whether it is a part of the spec.
    pub(crate) const fn is_part_of_spec(self) -> bool {
        matches!(self, Self::EphemeralContainers | Self::Resize)
    }

    fn parse(name: &str) -> Option<Self> {
        let all = [
            Self::None,
            Self::Status,
            Self::Scale,
            Self::Binding,
            Self::Eviction,
            Self::Token,
            Self::Approval,
            Self::Finalize,
            Self::EphemeralContainers,
            Self::Resize,
            Self::Exec,
            Self::Attach,
            Self::PortForward,
            Self::Proxy,
        ];
        all.into_iter().find(|part| part.name() == name)
    }
}

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
    pub(crate) keeps_version: bool,
}

impl Target {
    /// Sets the attributes of the object on the current span, by OpenTelemetry's conventions for Kubernetes.
    pub(crate) fn set_span_attributes(&self) {
        let span = Span::current();
        if span.is_recording() {
            let name = KeyValue::new(self.kind.traced.as_str(), self.name.clone());
            let namespace = namespace_attribute(&self.namespace);
            span.set_attributes(namespace.into_iter().chain([name]));
        }
    }

    /// Returns the target of a request; `subresource` is empty for the whole object.
    ///
    /// # Errors
    /// `NotFound` when the kind has no such subresource, `BadRequest` when the namespace does not fit the scope of the kind.
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

    /// Returns the path of the object in the store.
    pub(crate) fn path(&self) -> String {
        keys::object(self.kind, &self.key())
    }

    /// Returns the target of the whole object with this key.
    pub(crate) fn whole(kind: &'static Kind, key: &Key) -> Self {
        Self {
            kind: kind.stored(),
            served: kind,
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            subresource: Subresource::None,
            keeps_version: false,
        }
    }

    /// Returns the object, or the part of it, that a write of this target changes: a scale is in the whole object. All checks
    /// of a write are of this target, whatever the verb.
    pub(crate) fn written(&self) -> Self {
        match self.subresource {
            Subresource::Scale => Self::whole(self.served, &self.key()),
            _ => self.clone(),
        }
    }

    /// Returns the target of a request that is about the metadata of the object only.
    #[must_use]
    pub(crate) fn keeping_version(self) -> Self {
        Self {
            keeps_version: true,
            ..self
        }
    }

    /// Returns the kind in whose form the request is processed: the stored one or, for custom objects, the version of the request.
    pub(crate) fn form(&self) -> &'static Kind {
        match self.served.is_custom() {
            true => self.served,
            false => self.kind,
        }
    }
}
