//! The Event about containers in whose place nothing runs.

use setpoint_proto::core::{Container, Pod};

use super::Events;

impl Events {
    /// Records, at the start of the first container without a command, that placeholders run in the place of all such.
    pub fn placeholder(&self, pod: &Pod, started: &str) {
        let named: Vec<_> = without_command(pod).collect();
        if named.first().is_some_and(|first| first.name == started) {
            self.normal(pod, None, "Placeholder", || message(&named));
        }
    }
}

fn without_command(pod: &Pod) -> impl Iterator<Item = &Container> {
    let all = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    all.filter(|container| container.command.is_empty())
}

fn message(containers: &[&Container]) -> String {
    let named = |container: &&Container| format!("{} ({})", container.name, container.image);
    let named: Vec<_> = containers.iter().map(named).collect();
    format!(
        "The node runs no images, and these containers have no command: {}. A placeholder process runs in the place of \
         each, without probes and hooks. To run something, set spec.containers[].command, or process.images of the \
         node, or use a node with a container engine",
        named.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_has_one_event_for_all_placeholders() {
        let container = |name: &str, command: &[&str]| Container {
            name: name.to_owned(),
            image: format!("{name}:1"),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            ..Container::default()
        };
        let mut pod = Pod::default();
        pod.spec.init_containers = vec![container("wait", &["true"])];
        pod.spec.containers = vec![container("web", &[]), container("db", &[])];
        let named: Vec<_> = without_command(&pod).collect();
        assert_eq!(named[0].name, "web");
        let expected = "these containers have no command: web (web:1), db (db:1). A placeholder";
        assert!(message(&named).contains(expected), "{}", message(&named));
    }
}
