//! The Pods that are in a namespace whose level changes. They keep running; its user is warned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use prost::Message;
use setpoint_pod_security::{LevelVersion, evaluate};
use setpoint_proto::core::Pod;
use setpoint_proto::meta::OwnerReference;
use setpoint_store::cache::{AtLeast, Cached};
use tokio::time::timeout;

use crate::admission::Reader;
use crate::offload::offload;

/// Pods that are evaluated at most, as upstream.
const MAX_PODS: usize = 3000;
/// Time that it may take, as upstream.
const TIMEOUT: Duration = Duration::from_secs(1);

/// The part of a Pod that says how urgent its evaluation is. To decode more of all Pods of a namespace would take
/// longer than there is time.
#[derive(Message)]
struct Brief {
    #[prost(message, optional, tag = "1")]
    metadata: Option<Owners>,
    #[prost(message, optional, tag = "2")]
    spec: Option<Class>,
}

#[derive(Message)]
struct Owners {
    #[prost(message, repeated, tag = "13")]
    owner_references: Vec<OwnerReference>,
}

#[derive(Message)]
struct Class {
    #[prost(string, optional, tag = "29")]
    runtime_class_name: Option<String>,
}

/// Returns warnings about Pods that violate a level: one for each set of reasons.
pub(super) async fn check(
    namespace: &str,
    enforce: LevelVersion,
    exempt_classes: &BTreeSet<String>,
    reader: &dyn Reader,
) -> Vec<String> {
    let deadline = Instant::now() + TIMEOUT;
    let listing = reader.all::<Pod>(namespace, AtLeast::Any);
    let Ok(Ok(pods)) = timeout(TIMEOUT, listing).await else {
        return vec!["failed to list pods while checking new PodSecurity enforce level".to_owned()];
    };
    let bytes = pods.iter().map(|pod| pod.raw.len()).sum();
    let found = offload(bytes, || {
        let ordered = by_urgency(pods, exempt_classes, deadline);
        Found::among(&ordered, enforce, deadline)
    });
    found.await.warnings(namespace, enforce)
}

/// Returns Pods in the order of their evaluation, without those of exempt classes: one of each controller comes before
/// further ones, which are most likely like it.
fn by_urgency(
    pods: Vec<Arc<Cached>>,
    exempt_classes: &BTreeSet<String>,
    deadline: Instant,
) -> Vec<Arc<Cached>> {
    let (mut first, mut further, mut controllers) = (Vec::new(), Vec::new(), BTreeSet::new());
    for pod in pods {
        if Instant::now() >= deadline {
            further.push(pod);
            continue;
        }
        let brief = Brief::decode(pod.raw.as_ref()).unwrap_or_default();
        let class = brief.spec.unwrap_or_default().runtime_class_name;
        if class.is_some_and(|class| exempt_classes.contains(&class)) {
            continue;
        }
        let owners = brief.metadata.unwrap_or_default().owner_references;
        let controller = owners
            .into_iter()
            .find(|owner| owner.controller == Some(true));
        match controller {
            Some(controller) if !controllers.insert(controller.uid.clone()) => further.push(pod),
            _ => first.push(pod),
        }
    }
    first.extend(further);
    first
}

/// The Pods with the same reasons.
struct Group {
    /// The first name in alphabetical order.
    name: String,
    count: usize,
}

/// The violations of the Pods of a namespace.
#[derive(Default)]
struct Found {
    by_reasons: BTreeMap<String, Group>,
    checked: usize,
    total: usize,
}

impl Found {
    /// Evaluates Pods until the deadline, but one at least.
    fn among(pods: &[Arc<Cached>], enforce: LevelVersion, deadline: Instant) -> Self {
        let mut found = Self {
            total: pods.len(),
            ..Self::default()
        };
        for pod in pods.iter().take(MAX_PODS) {
            found.checked += 1;
            if let Ok(pod) = Pod::decode(pod.raw.as_ref()) {
                found.evaluate(pod, enforce);
            }
            if Instant::now() >= deadline {
                break;
            }
        }
        found
    }

    fn evaluate(&mut self, pod: Pod, enforce: LevelVersion) {
        let violations = evaluate(enforce, &pod.metadata, &pod.spec);
        if violations.is_empty() {
            return;
        }
        let name = pod.metadata.name;
        let group = self.by_reasons.entry(violations.reasons());
        let group = group.or_insert_with(|| Group {
            name: name.clone(),
            count: 0,
        });
        group.count += 1;
        if name < group.name {
            group.name = name;
        }
    }

    fn warnings(self, namespace: &str, enforce: LevelVersion) -> Vec<String> {
        let (checked, total) = (self.checked, self.total);
        let mut warnings = Vec::new();
        if checked < total {
            warnings.push(format!(
                "new PodSecurity enforce level only checked against the first {checked} of {total} existing pods"
            ));
        }
        if !self.by_reasons.is_empty() {
            warnings.push(format!(
                "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{enforce}\""
            ));
        }
        let groups = self.by_reasons.iter();
        let mut groups: Vec<_> = groups
            .map(|(reasons, group)| group.warning(reasons))
            .collect();
        groups.sort_unstable();
        warnings.extend(groups);
        warnings
    }
}

impl Group {
    fn warning(&self, reasons: &str) -> String {
        let name = &self.name;
        match self.count - 1 {
            0 => format!("{name}: {reasons}"),
            1 => format!("{name} (and 1 other pod): {reasons}"),
            others => format!("{name} (and {others} other pods): {reasons}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_codec::kind_of;
    use setpoint_model::Key;
    use setpoint_pod_security::{Level, Version};
    use setpoint_proto::core::Container;

    use super::*;

    const BASELINE: LevelVersion = LevelVersion {
        level: Level::Baseline,
        version: Version::Latest,
    };

    /// Returns this number of Pods that share the network of their host.
    fn pods(count: usize) -> Vec<Arc<Cached>> {
        let pods = (0..count).map(|n| {
            let mut pod = Pod::default();
            pod.metadata.name = format!("pod-{n}");
            pod.spec.host_network = true;
            pod.spec.containers.push(Container::default());
            let raw = pod.encode_to_vec().into();
            let key = Key::new("default", &pod.metadata.name);
            Arc::new(Cached::computed(kind_of::<Pod>(), key, raw))
        });
        pods.collect()
    }

    #[test]
    fn no_more_than_3000_pods_are_evaluated_and_the_user_is_told() {
        let deadline = Instant::now() + Duration::from_secs(600);
        let found = Found::among(&pods(MAX_PODS + 2), BASELINE, deadline);
        let warnings = found.warnings("default", BASELINE);
        let first = "new PodSecurity enforce level only checked against the first 3000 of 3002 existing pods";
        assert_eq!(warnings[0], first);
        assert_eq!(warnings[2], "pod-0 (and 2999 other pods): host namespaces");
    }

    #[test]
    fn one_pod_is_evaluated_if_there_is_no_time_for_more() {
        let found = Found::among(&pods(5), BASELINE, Instant::now());
        let warnings = found.warnings("default", BASELINE);
        let first =
            "new PodSecurity enforce level only checked against the first 1 of 5 existing pods";
        assert_eq!(warnings[0], first);
        assert_eq!(warnings.len(), 3);
    }
}
