//! Maps containers of the engine to Pods: by labels, and readably by name.

use std::collections::HashMap;
use std::time::Duration;

use setpoint_model::Key;

use crate::{ContainerConfig, ContainerId, SandboxConfig};

/// Container name of a Pod's pause container.
pub const PAUSE: &str = "POD";

pub const CLUSTER: &str = "setpoint.dev/cluster";
pub const NODE: &str = "setpoint.dev/node";
pub const UID: &str = "io.kubernetes.pod.uid";
const ATTEMPT: &str = "setpoint.dev/attempt";
const BACKOFF: &str = "setpoint.dev/backoff-ms";
const ROUND: &str = "setpoint.dev/round";
const POD: &str = "io.kubernetes.pod.name";
const NAMESPACE: &str = "io.kubernetes.pod.namespace";
const CONTAINER: &str = "io.kubernetes.container.name";

/// Label values by name.
pub type Labels = HashMap<String, String>;

/// The identity of a container of the engine.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    pub pod: Key,
    pub id: ContainerId,
    pub backoff: Duration,
    pub round: u32,
}

impl Identity {
    /// Returns the identity of an attempt at a Pod's pause container.
    pub fn of_pause(sandbox: &SandboxConfig, attempt: u32) -> Self {
        let (uid, name) = (sandbox.uid.clone(), PAUSE.to_owned());
        Self {
            pod: sandbox.pod(),
            id: ContainerId { uid, name, attempt },
            backoff: Duration::ZERO,
            round: 0,
        }
    }

    pub fn of(pod: Key, config: &ContainerConfig) -> Self {
        Self {
            pod,
            id: config.id.clone(),
            backoff: config.backoff,
            round: config.round,
        }
    }

    pub fn is_pause(&self) -> bool {
        self.id.name == PAUSE
    }

    /// Returns the container's name in the engine.
    pub fn name(&self) -> String {
        let ContainerId { uid, name, attempt } = &self.id;
        let Key {
            namespace,
            name: pod,
        } = &self.pod;
        format!("k8s_{name}_{pod}_{namespace}_{uid}_{attempt}")
    }

    /// Returns the configuration of its sandbox, as far as the labels contain it.
    pub fn sandbox(&self) -> SandboxConfig {
        SandboxConfig {
            namespace: self.pod.namespace.clone(),
            name: self.pod.name.clone(),
            uid: self.id.uid.clone(),
            ..SandboxConfig::default()
        }
    }

    pub fn labels(&self, cluster: &str, node: &str) -> Labels {
        let mut labels = pod_labels(&self.sandbox(), cluster, node);
        let own = [
            (CONTAINER, self.id.name.clone()),
            (ATTEMPT, self.id.attempt.to_string()),
            (BACKOFF, self.backoff.as_millis().to_string()),
            (ROUND, self.round.to_string()),
        ];
        labels.extend(own.map(|(name, value)| (name.to_owned(), value)));
        labels
    }

    /// Parses the labels of a container; `None` if the agent did not create it.
    pub fn parse(labels: &Labels) -> Option<Self> {
        let get = |name: &str| labels.get(name).cloned();
        let id = ContainerId {
            uid: get(UID)?,
            name: get(CONTAINER)?,
            attempt: get(ATTEMPT)?.parse().ok()?,
        };
        Some(Self {
            pod: Key::new(&get(NAMESPACE)?, &get(POD)?),
            id,
            backoff: Duration::from_millis(get(BACKOFF)?.parse().ok()?),
            // A container of an older agent has none.
            round: get(ROUND).map_or(Some(0), |round| round.parse().ok())?,
        })
    }
}

/// Returns the labels of everything that belongs to a Pod.
pub fn pod_labels(sandbox: &SandboxConfig, cluster: &str, node: &str) -> Labels {
    let labels = [
        (CLUSTER, cluster),
        (NODE, node),
        (POD, &sandbox.name),
        (NAMESPACE, &sandbox.namespace),
        (UID, &sandbox.uid),
    ];
    labels
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// Returns a list filter for these labels.
pub fn filter(labels: &[(&str, &str)]) -> HashMap<String, Vec<String>> {
    let labels = labels.iter().map(|(name, value)| format!("{name}={value}"));
    HashMap::from([("label".to_owned(), labels.collect())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_parsed_back_from_its_labels() {
        let identity = Identity {
            pod: Key::new("shop", "web"),
            id: ContainerId {
                uid: "5be0".into(),
                name: "main".into(),
                attempt: 3,
            },
            backoff: Duration::from_millis(20_500),
            round: 2,
        };
        assert_eq!(identity.name(), "k8s_main_web_shop_5be0_3");
        let labels = identity.labels("a", "node-1");
        assert_eq!(Identity::parse(&labels), Some(identity));
        assert_eq!((&labels[CLUSTER][..], &labels[NODE][..]), ("a", "node-1"));
        assert_eq!(Identity::parse(&Labels::new()), None);
    }
}
