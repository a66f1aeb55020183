//! Events about nodes: what they do not do of what Pods ask for. Each is recorded once for its node, as it does not
//! depend on the Pod, which the message names as an example.

use std::collections::BTreeSet;
use std::time::Instant;

use setpoint_model::Key;
use setpoint_proto::Resource as _;
use setpoint_proto::core::{Node, ObjectReference, Pod};

use super::{Events, shortened};
use crate::pod::fields::Field;
use crate::pod::volumes::account;

/// Maximum number of fields named in one Event.
const MAX_FIELDS: usize = 10;

impl Events {
    /// Records that fields of Pods have no effect on this node.
    pub fn unsupported(&self, pod: &Pod, fields: &[Field]) {
        let mut seen = BTreeSet::new();
        let now = Instant::now();
        let is_new = |field: &&Field| {
            let path = field.of_any_pod();
            seen.insert(path.clone()) && self.told.is_new(&pod.spec.node_name, &path, now)
        };
        let new: Vec<_> = fields.iter().filter(is_new).collect();
        if !new.is_empty() {
            self.about_node(pod, "Unsupported", false, without_effect(pod, &new));
        }
    }

    /// Records that the node cannot bound a Pod that had no resources of its own when it started.
    pub fn cannot_be_bounded(&self, pod: &Pod) {
        self.normal(pod, None, "Unsupported", || {
            "spec.resources has no effect before the Pod is recreated: it had none when it started"
                .to_owned()
        });
    }

    /// Records where the files of accounts are on a node that mounts none.
    pub fn account_folder(&self, pod: &Pod) {
        self.once(pod, "ServiceAccountNotMounted", false, || {
            format!(
                "This node mounts no volumes: token, ca.crt and namespace of a Pod's ServiceAccount are in the \
                 directory that the variable {} of each container names",
                account::VARIABLE
            )
        });
    }

    /// Records that Pods ask the cluster's DNS and the node knows none. Where it could, that is a problem.
    pub fn missing_dns(&self, pod: &Pod, is_problem: bool) {
        let advice = match is_problem {
            true => "The setting cluster_dns of the node's agent names its servers",
            false => "Nodes with a container engine, or with networks of Pods, resolve them",
        };
        self.once(pod, "MissingClusterDNS", is_problem, || {
            format!(
                "kubelet does not have ClusterDNS IP configured and cannot create Pod using \"ClusterFirst\" policy. \
                 Falling back to \"Default\" policy. Names of Services are not resolved, first for Pod {}. {advice}",
                Key::of(&pod.metadata)
            )
        });
    }

    /// Records an Event about the node of a Pod, unless it was recorded before.
    fn once(&self, pod: &Pod, reason: &str, is_problem: bool, message: impl FnOnce() -> String) {
        if self
            .told
            .is_new(&pod.spec.node_name, reason, Instant::now())
        {
            self.about_node(pod, reason, is_problem, message());
        }
    }

    fn about_node(&self, pod: &Pod, reason: &str, is_problem: bool, message: String) {
        let Some(recorder) = &self.recorder else {
            return;
        };
        let (about, message) = (node(&pod.spec.node_name), shortened(message));
        match is_problem {
            true => recorder.warning(&about, reason, message),
            false => recorder.normal(&about, reason, message),
        }
    }
}

/// Returns the reference to a node of the kubelet's Events, whose uid is the name of the node.
fn node(name: &str) -> ObjectReference {
    ObjectReference {
        kind: Node::KIND.to_owned(),
        name: name.to_owned(),
        uid: name.to_owned(),
        api_version: Node::API_VERSION.to_owned(),
        ..ObjectReference::default()
    }
}

/// Returns the message about fields of a Pod that have no effect, with the runtimes that obey them.
fn without_effect(pod: &Pod, fields: &[&Field]) -> String {
    let (named, more) = fields.split_at(fields.len().min(MAX_FIELDS));
    let mut groups: Vec<(&[&str], Vec<String>)> = Vec::new();
    for field in named {
        let path = field.of_any_pod();
        match groups.iter_mut().find(|(of, _)| *of == field.runtimes) {
            Some((_, paths)) => paths.push(path),
            None => groups.push((&field.runtimes, vec![path])),
        }
    }
    let groups = groups.iter().map(|(runtimes, paths)| {
        let paths = paths.join(", ");
        match runtimes.is_empty() {
            true => format!("{paths} (obeyed by no node)"),
            false => format!("{paths} (obeyed by runtimes {})", runtimes.join(", ")),
        }
    });
    let groups = groups.collect::<Vec<_>>().join("; ");
    let more = match more.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let pod = Key::of(&pod.metadata);
    format!(
        "Fields of Pods without effect on this node: {groups}{more}. First set by Pod {pod}, which needs a node of \
         another runtime if it depends on them"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(path: &str, runtimes: &[&'static str]) -> Field {
        Field {
            path: path.to_owned(),
            runtimes: runtimes.to_vec(),
        }
    }

    #[test]
    fn fields_without_effect_are_named_with_the_runtimes_that_obey_them() {
        let mut pod = Pod::default();
        (pod.metadata.namespace, pod.metadata.name) = ("shop".to_owned(), "web".to_owned());
        let fields = [
            field("spec.containers{web}.resources.limits", &["docker", "cri"]),
            field("spec.imagePullSecrets", &[]),
            field(
                "spec.containers{web}.volumeMounts{/a}.mountPropagation",
                &[],
            ),
            field("spec.initContainers{db}.stdin", &["docker", "cri"]),
        ];
        let message = without_effect(&pod, &fields.each_ref());
        let expected = "Fields of Pods without effect on this node: spec.containers[].resources.limits, \
                        spec.initContainers[].stdin (obeyed by runtimes docker, cri); spec.imagePullSecrets, \
                        spec.containers[].volumeMounts[].mountPropagation (obeyed by no node). First set by Pod \
                        shop/web, which needs a node of another runtime if it depends on them";
        assert_eq!(message, expected);
    }

    #[test]
    fn many_fields_are_counted() {
        let fields: Vec<_> = (0..12).map(|n| field(&format!("spec.a{n}"), &[])).collect();
        let message = without_effect(&Pod::default(), &fields.iter().collect::<Vec<_>>());
        assert!(
            message.contains("spec.a9 (obeyed by no node) and 2 more."),
            "{message}"
        );
    }
}
