//! The ranks of API groups, built once from the descriptors.

use std::collections::HashMap;
use std::sync::LazyLock;

use setpoint_proto::options::GroupRules;

use crate::kinds::{extension, options, pool};

/// Returns the place of a group of Kubernetes in discovery; `None` for others.
pub fn group_rank(group: &str) -> Option<u32> {
    static RANKS: LazyLock<HashMap<String, u32>> = LazyLock::new(ranks);
    RANKS.get(group).copied()
}

fn ranks() -> HashMap<String, u32> {
    let extension = extension("setpoint.group");
    let files = pool().files();
    let groups = files.filter(|file| file.options().has_extension(&extension));
    let rules = groups.map(|file| options::<GroupRules>(&file.options(), &extension));
    let ranked = rules.filter_map(|rules| Some((rules.name, rules.rank?)));
    ranked.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ranks_differ_and_begin_with_the_core_group() {
        let ranks = ranks();
        let places: BTreeSet<_> = ranks.values().copied().collect();
        assert!(
            places
                .iter()
                .copied()
                .eq(0..u32::try_from(ranks.len()).unwrap())
        );
        assert_eq!(group_rank(""), Some(0));
        assert_eq!(group_rank("apps"), Some(2));
        assert_eq!(group_rank("example.com"), None);
    }
}
