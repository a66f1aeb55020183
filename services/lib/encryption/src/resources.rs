//! The names of resources in a configuration, and the order in which they are looked up.

use std::fmt;

/// Resources of API groups: `secrets`, `deployments.apps`, `*.apps`, `*.` (the core group) or `*.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupResource {
    pub(crate) group: String,
    pub(crate) resource: String,
}

/// All resources, or all groups.
const ANY: &str = "*";

impl GroupResource {
    /// Reads a name, as upstream's `ParseGroupResource`.
    pub(crate) fn parse(name: &str) -> Self {
        let (resource, group) = name.split_once('.').unwrap_or((name, ""));
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
        }
    }

    /// Returns all resources of its group.
    pub(crate) fn whole_group(&self) -> Self {
        Self {
            group: self.group.clone(),
            resource: ANY.to_owned(),
        }
    }

    pub(crate) fn everything() -> Self {
        Self::parse("*.*")
    }

    pub(crate) fn is_whole_group(&self) -> bool {
        self.resource == ANY
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.group == ANY && self.resource == ANY
    }

    /// Returns whether it names just this resource.
    pub(crate) fn is(&self, group: &str, resource: &str) -> bool {
        self.group == group && self.resource == resource
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.resource.as_str(), self.group.as_str()) {
            (ANY, "") => f.write_str("*."),
            (resource, "") => f.write_str(resource),
            (resource, group) => write!(f, "{resource}.{group}"),
        }
    }
}

/// Returns what is set for a resource: by its own name, its group's, or that of everything.
pub(crate) fn find<'a, T>(
    rules: &'a [(GroupResource, T)],
    group: &str,
    resource: &str,
) -> Option<&'a T> {
    let named = |group: &str, resource: &str| {
        let mut rules = rules.iter();
        let found = rules.find(|(named, _)| named.is(group, resource));
        found.map(|(_, rule)| rule)
    };
    named(group, resource)
        .or_else(|| named(group, ANY))
        .or_else(|| named(ANY, ANY))
}
