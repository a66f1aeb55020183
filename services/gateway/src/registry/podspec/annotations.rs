//! Annotations that mean something for a Pod.

use std::collections::BTreeMap;

use setpoint_proto::core::PodSpec;

use super::paths;
use crate::registry::path::Path;
use crate::registry::problems::Problems;

const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const MIRROR: &str = "kubernetes.io/config.mirror";
const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Finds what is wrong with annotations that Kubernetes itself reads.
pub fn validate(
    annotations: &BTreeMap<String, String>,
    spec: &PodSpec,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    if let Some(value) = annotations.get(MIRROR)
        && spec.node_name.is_empty()
    {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        problems.invalid(&path.key(MIRROR), value, detail);
    }
    if let Some(cost) = annotations.get(DELETION_COST)
        && !is_cost(cost)
    {
        problems.invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer");
    }
    for (key, profile) in annotations {
        if key == SECCOMP || key.starts_with(SECCOMP_CONTAINER) {
            validate_seccomp(profile, &path.name(key), problems);
        }
    }
}

/// A number of 32 bits, written in the one usual way.
fn is_cost(text: &str) -> bool {
    let usual = text == "0" || text.starts_with(|first| matches!(first, '-' | '1'..='9'));
    usual && text.parse::<i32>().is_ok()
}

fn validate_seccomp(profile: &str, path: &Path<'_>, problems: &mut Problems) {
    match profile.strip_prefix("localhost/") {
        Some(file) => paths::validate_descending(file, path, problems),
        None if ["runtime/default", "docker/default", "unconfined"].contains(&profile) => {}
        None => problems.invalid(path, profile, "must be a valid seccomp profile"),
    }
}
