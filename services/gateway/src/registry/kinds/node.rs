//! The rules of a Node: its agent may bring a status along when it registers.

use setpoint_model::names;
use setpoint_proto::core::Node;

use crate::registry::path::Path;
use crate::registry::problems::Problems;
use crate::registry::strategy::Rules;

const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

impl Rules for Node {
    fn prepare_update(&mut self, old: &Self) {
        self.status = old.status.clone();
    }

    fn take_status(&mut self, sent: &mut Self) {
        self.status = std::mem::take(&mut sent.status);
    }

    fn validate(&self, problems: &mut Problems) {
        let path = Path::root("spec");
        let path = path.field("taints");
        for (index, taint) in self.spec.taints.iter().enumerate() {
            let at = path.index(index);
            let key = taint.key.as_str();
            problems.all_invalid(&at.field("key"), key, names::validate_qualified_name(key));
            let value = taint.value.as_str();
            problems.all_invalid(
                &at.field("value"),
                value,
                names::validate_label_value(value),
            );
            if !EFFECTS.contains(&taint.effect.as_str()) {
                problems.unsupported(&at.field("effect"), &taint.effect, EFFECTS);
            }
            let same = |other: &setpoint_proto::core::Taint| {
                (&other.key, &other.effect) == (&taint.key, &taint.effect)
            };
            if self.spec.taints[..index].iter().any(same) {
                problems.duplicate(&at, taint);
            }
        }
    }

    fn validate_update(&self, old: &Self, problems: &mut Problems) {
        let path = Path::root("spec");
        for (new, old, field) in [
            (&self.spec.pod_cidr, &old.spec.pod_cidr, "podCIDR"),
            (&self.spec.provider_id, &old.spec.provider_id, "providerID"),
        ] {
            if new != old && !old.is_empty() {
                problems.forbidden(
                    &path.field(field),
                    "node updates may not change it once it is set",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::Taint;

    use super::*;

    #[test]
    fn a_taint_has_an_effect_and_stands_once() {
        let taint = |effect: &str| Taint {
            key: "gpu".into(),
            effect: effect.into(),
            ..Default::default()
        };
        let complaints = |taints| {
            let mut node = Node::default();
            node.spec.taints = taints;
            let mut problems = Problems::default();
            node.validate(&mut problems);
            problems.to_string()
        };
        assert_eq!(
            complaints(vec![taint("NoSchedule"), taint("NoExecute")]),
            "[]"
        );
        assert!(
            complaints(vec![taint("Never")]).contains("spec.taints[0].effect: Unsupported value")
        );
        let twice = complaints(vec![taint("NoSchedule"), taint("NoSchedule")]);
        assert!(
            twice.starts_with("spec.taints[1]: Duplicate value"),
            "{twice}"
        );
    }

    #[test]
    fn an_address_range_is_for_life() {
        let (mut old, mut new) = (Node::default(), Node::default());
        new.spec.pod_cidr = "10.0.0.0/24".into();
        let complaints = |new: &Node, old: &Node| {
            let mut problems = Problems::default();
            new.validate_update(old, &mut problems);
            problems.to_string()
        };
        assert_eq!(complaints(&new, &old), "[]");
        old.spec.pod_cidr = "10.0.1.0/24".into();
        assert!(complaints(&new, &old).starts_with("spec.podCIDR: Forbidden"));
    }
}
