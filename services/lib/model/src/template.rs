//! Comparison and hashes of Pod templates.

use prost::Message;
use setpoint_proto::core::PodTemplateSpec;

use crate::hash;

/// The label of ReplicaSets and their Pods with the hash of the template.
pub const LABEL: &str = "pod-template-hash";

/// An encoded Pod template for comparisons, without [`LABEL`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(Box<[u8]>);

impl Template {
    /// Encodes a template.
    pub fn of(template: &PodTemplateSpec) -> Self {
        let mut template = template.clone();
        template.metadata.labels.remove(LABEL);
        Self(template.encode_to_vec().into())
    }

    /// Returns the hash of the template and a collision count.
    pub fn hash(&self, collision_count: Option<i32>) -> String {
        let salt = collision_count.map(i32::to_le_bytes);
        let salted: Vec<u8> = self
            .0
            .iter()
            .copied()
            .chain(salt.into_iter().flatten())
            .collect();
        hash::safe(hash::fnv32a(&salted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(label: Option<&str>) -> Template {
        let mut template = PodTemplateSpec::default();
        template.metadata.labels.insert("app".into(), "web".into());
        template
            .metadata
            .labels
            .extend(label.map(|hash| (LABEL.into(), hash.into())));
        Template::of(&template)
    }

    /// Checks D5.
    #[test]
    fn the_hash_label_is_not_part_of_the_template() {
        assert_eq!(template(None), template(Some("x")));
        assert_eq!(template(None).hash(None), template(Some("x")).hash(None));
    }

    #[test]
    fn templates_that_differ_have_different_hashes() {
        let other = Template::of(&PodTemplateSpec::default());
        assert_ne!(template(None), other);
        assert_ne!(template(None).hash(None), other.hash(None));
    }

    /// Checks D4.
    #[test]
    fn a_collision_count_changes_the_hash() {
        let hash = |count| template(None).hash(count);
        assert_ne!(hash(None), hash(Some(1)));
        assert_ne!(hash(Some(1)), hash(Some(2)));
        assert!((1..=10).contains(&hash(None).len()));
    }
}
