//! Maps sandboxes and containers of the runtime to Pods. Labels name the Pod, as the kubelet's do; an annotation has
//! what the agent must know after a restart.

use std::collections::HashMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
use setpoint_model::Key;

use crate::{ContainerConfig, SandboxConfig};

/// Label with the node, by which an agent finds its own.
const NODE: &str = "setpoint.dev/node";
const UID: &str = "io.kubernetes.pod.uid";
const POD: &str = "io.kubernetes.pod.name";
const NAMESPACE: &str = "io.kubernetes.pod.namespace";
const CONTAINER: &str = "io.kubernetes.container.name";
/// Annotation with the configuration, without volumes and secrets, in JSON.
const CONFIG: &str = "setpoint.dev/config";

/// Labels or annotations.
pub type Pairs = HashMap<String, String>;

/// Returns the labels that select everything of a node.
pub fn of_node(node: &str) -> Pairs {
    [(NODE.to_owned(), node.to_owned())].into()
}

/// Returns the labels that select everything of a Pod.
pub fn of_pod(node: &str, uid: &str) -> Pairs {
    let mut labels = of_node(node);
    labels.insert(UID.to_owned(), uid.to_owned());
    labels
}

/// Returns the labels of the sandbox of a Pod.
pub fn of_sandbox(node: &str, pod: &Key, uid: &str) -> Pairs {
    let mut labels = of_pod(node, uid);
    let names = [(POD, &pod.name), (NAMESPACE, &pod.namespace)];
    labels.extend(names.map(|(label, value)| (label.to_owned(), value.clone())));
    labels
}

/// Returns the labels of a container of a Pod.
pub fn of_container(node: &str, pod: &Key, config: &ContainerConfig) -> Pairs {
    let mut labels = of_sandbox(node, pod, &config.id.uid);
    labels.insert(CONTAINER.to_owned(), config.id.name.clone());
    labels
}

/// Returns the annotation with a configuration.
pub fn annotations(config: &impl Serialize) -> Result<Pairs, serde_json::Error> {
    let config = serde_json::to_string(config)?;
    Ok([(CONFIG.to_owned(), config)].into())
}

/// Parses the annotation of a sandbox; `None` if the agent did not create it.
pub fn sandbox(annotations: &Pairs) -> Option<SandboxConfig> {
    parse(annotations)
}

/// Parses the annotation of a container; `None` if the agent did not create it.
pub fn container(annotations: &Pairs) -> Option<ContainerConfig> {
    parse(annotations)
}

fn parse<T: DeserializeOwned>(annotations: &Pairs) -> Option<T> {
    serde_json::from_str(annotations.get(CONFIG)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ContainerId;

    #[test]
    fn a_container_is_found_by_its_labels_and_known_by_its_annotation_without_secrets() {
        let config = ContainerConfig {
            id: ContainerId {
                uid: "5be0".into(),
                name: "main".into(),
                attempt: 3,
            },
            image: "nginx".into(),
            env: vec![("PASSWORD".into(), "hush".into())],
            ..ContainerConfig::default()
        };
        let kept = config.without_secrets();
        let annotations = annotations(&kept).unwrap();
        assert!(!annotations[CONFIG].contains("hush"));
        assert_eq!(container(&annotations), Some(kept));
        assert_eq!(container(&Pairs::new()), None);
        let labels = of_container("node-1", &Key::new("shop", "web"), &config);
        let wanted = of_pod("node-1", "5be0");
        assert!(wanted.iter().all(|(name, value)| labels[name] == *value));
        assert_eq!(labels[CONTAINER], "main");
    }
}
