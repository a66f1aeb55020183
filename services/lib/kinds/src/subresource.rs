//! The subresources of objects: parts of them, and requests about them.

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
    pub const fn is_request(self) -> bool {
        use Subresource::{Attach, Binding, Eviction, Exec, PortForward, Proxy, Token};
        matches!(
            self,
            Binding | Eviction | Token | Exec | Attach | PortForward | Proxy
        )
    }

    /// Returns whether it is a part of the spec.
    pub const fn is_part_of_spec(self) -> bool {
        matches!(self, Self::EphemeralContainers | Self::Resize)
    }

    /// Returns the subresource of a name in a URL.
    pub fn parse(name: &str) -> Option<Self> {
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
