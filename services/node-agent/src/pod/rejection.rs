//! The reasons for which a node rejects a Pod that is bound to it, in the kubelet's words.

use std::net::Ipv4Addr;

use setpoint_proto::core::Pod;

/// The kubelet's reason for an evicted Pod.
pub const EVICTED: &str = "Evicted";

/// The label of the operating system, and that of nodes.
pub const OS: (&str, &str) = ("kubernetes.io/os", "linux");

/// The address of an admitted Pod, `None` of one that fits and is to be admitted, or the reason of its rejection.
pub type AdmitResult = Result<Option<Ipv4Addr>, Rejection>;

/// A reason for which a node rejects a Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// The node lacks a resource.
    Insufficient(InsufficientResource),
    /// Another Pod of the node has a host port of the Pod.
    HostPort,
    /// The Pod sets a kernel parameter that it may not set; with the message.
    Sysctl(String),
    /// The label of the Pod names another operating system than that of the node.
    OsLabel,
    /// The Pod is for another operating system than that of the node.
    Os,
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
            Self::OsLabel => "PodOSSelectorNodeLabelDoesNotMatch".to_owned(),
            Self::Os => "PodOSNotSupported".to_owned(),
            Self::Pressure(_) => EVICTED.to_owned(),
            Self::Shutdown => "NodeShutdown".to_owned(),
        }
    }

    /// Returns the message of the Event of the Pod.
    pub fn message(&self) -> String {
        match self {
            Self::Insufficient(lack) => lack.message(),
            Self::Sysctl(message) => message.clone(),
            Self::OsLabel => {
                "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label".to_owned()
            }
            Self::Os => "Failed to admit pod as the OS field doesn't match node OS".to_owned(),
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

/// Checks that a Pod is for the operating system of nodes.
///
/// # Errors
/// If its label or its spec names another.
pub fn check_os(pod: &Pod) -> Result<(), Rejection> {
    let (label, own) = OS;
    if pod.metadata.labels.get(label).is_some_and(|os| os != own) {
        return Err(Rejection::OsLabel);
    }
    match pod.spec.os.as_ref().is_none_or(|os| os.name == own) {
        true => Ok(()),
        false => Err(Rejection::Os),
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

#[cfg(test)]
mod tests {
    use setpoint_proto::core::PodOs;

    use super::*;

    /// Checks E7.
    #[test]
    fn a_pod_for_another_operating_system_is_rejected_in_the_words_of_the_kubelet() {
        let verdict = |os: Option<&str>, label: Option<&str>| {
            let mut pod = Pod::default();
            pod.spec.os = os.map(|name| PodOs { name: name.into() });
            let label = label.map(|os| (OS.0.to_owned(), os.to_owned()));
            pod.metadata.labels.extend(label);
            let rejection = check_os(&pod).err()?;
            Some((rejection.reason(), rejection.message()))
        };
        assert_eq!(
            [verdict(None, None), verdict(Some("linux"), Some("linux"))],
            [None, None]
        );
        let (reason, message) = verdict(Some("windows"), None).unwrap();
        assert_eq!(reason, "PodOSNotSupported");
        assert_eq!(
            message,
            "Failed to admit pod as the OS field doesn't match node OS"
        );
        let (reason, _) = verdict(Some("windows"), Some("windows")).unwrap();
        assert_eq!(reason, "PodOSSelectorNodeLabelDoesNotMatch");
    }
}
