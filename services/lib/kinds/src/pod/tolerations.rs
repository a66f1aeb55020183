//! The tolerations that every Pod has unless it says otherwise (upstream: the admission plugin
//! DefaultTolerationSeconds).

use setpoint_proto::core::Toleration;

/// The taints of nodes that are not ready or cannot be reached, whose Pods are evicted.
const TAINTS: [&str; 2] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
];
const NO_EXECUTE: &str = "NoExecute";
/// The time for which a Pod stays on such a node.
const SECONDS: i64 = 300;

/// Adds the default tolerations of the taints that no toleration names.
pub fn add_defaults(tolerations: &mut Vec<Toleration>) {
    for taint in TAINTS {
        if !tolerations
            .iter()
            .any(|toleration| names(toleration, taint))
        {
            tolerations.push(default(taint));
        }
    }
}

/// Returns whether a toleration is about the taint with its effect, or about all.
fn names(toleration: &Toleration, taint: &str) -> bool {
    [taint, ""].contains(&toleration.key.as_str())
        && [NO_EXECUTE, ""].contains(&toleration.effect.as_str())
}

fn default(taint: &str) -> Toleration {
    Toleration {
        key: taint.into(),
        operator: "Exists".into(),
        effect: NO_EXECUTE.into(),
        toleration_seconds: Some(SECONDS),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerations_are_added_once_and_only_where_none_is_given() {
        let mut tolerations = Vec::new();
        add_defaults(&mut tolerations);
        add_defaults(&mut tolerations);
        let keys: Vec<_> = tolerations.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(keys, TAINTS);
        let all = Toleration {
            operator: "Exists".into(),
            ..Default::default()
        };
        let mut tolerations = vec![all];
        add_defaults(&mut tolerations);
        assert_eq!(tolerations.len(), 1);
        let mut unreachable = default(TAINTS[1]);
        unreachable.toleration_seconds = Some(5);
        let mut tolerations = vec![unreachable];
        add_defaults(&mut tolerations);
        assert_eq!(tolerations.len(), 2);
        assert_eq!(tolerations[0].toleration_seconds, Some(5));
    }
}
