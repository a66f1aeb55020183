//! The reasons for which a node rejects a Pod that is bound to it, in the kubelet's words.

use crate::eviction::EVICTED;

/// A reason for which a node rejects a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The node lacks a resource.
    Insufficient(InsufficientResource),
    /// Another Pod of the node has a host port of the Pod.
    HostPort,
    /// The Pod sets a kernel parameter that it may not set; with the message.
    Sysctl(String),
    /// The node has these conditions.
    Pressure(Vec<&'static str>),
    /// The node shuts down.
    Shutdown,
}

/// The resource that a node lacks for a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsufficientResource {
    /// The name of the resource, or `pods`.
    pub resource: String,
    /// Amount that the Pod requests; of `cpu`, in thousandths.
    pub requested: i64,
    /// Amount requested by admitted Pods.
    pub used: i64,
    /// Amount that the node can allocate.
    pub capacity: i64,
}

impl Rejection {
    /// Returns the reason in the status of the Pod.
    pub fn reason(&self) -> String {
        match self {
            Self::Insufficient(lack) => format!("OutOf{}", lack.resource),
            Self::HostPort => "NodePorts".to_owned(),
            Self::Sysctl(_) => "SysctlForbidden".to_owned(),
            Self::Pressure(_) => EVICTED.to_owned(),
            Self::Shutdown => "NodeShutdown".to_owned(),
        }
    }

    /// Returns the message of the Event of the Pod.
    pub fn message(&self) -> String {
        match self {
            Self::Insufficient(lack) => lack.message(),
            Self::Sysctl(message) => message.clone(),
            Self::Pressure(conditions) => {
                format!("The node had condition: [{}]. ", conditions.join(" "))
            }
            Self::Shutdown => "Pod was rejected as the node is shutting down.".to_owned(),
            Self::HostPort => {
                "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
                    .to_owned()
            }
        }
    }
}

impl InsufficientResource {
    /// Returns the message of the kubelet.
    pub fn message(&self) -> String {
        let Self {
            resource,
            requested,
            used,
            capacity,
        } = self;
        format!(
            "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
        )
    }
}
