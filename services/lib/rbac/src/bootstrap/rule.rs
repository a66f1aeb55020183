//! Rules of roles, as rows of tables.

use setpoint_proto::rbac::PolicyRule;

/// The verbs that read objects.
pub const READ: &str = "get list watch";

/// The verbs that write objects.
pub const WRITE: &str = "create update patch delete deletecollection";

/// The verbs of [`READ`] and [`WRITE`].
pub const READ_WRITE: &str = "get list watch create update patch delete deletecollection";

/// Names, each with the rules of its role.
pub type Table = Vec<(&'static str, Vec<PolicyRule>)>;

/// Makes a [`Table`]. A row is a rule of two kinds; each cell has words.
///
/// * Verbs, API groups and resources, and the names of the only objects that the rule is for, if it is not for all.
///   `core` is the group whose name is empty.
/// * Verbs, `paths`, and paths that are not those of resources, which may end in `*`.
macro_rules! table {
    ($($name:literal { $($verbs:tt $groups:tt $resources:tt $($names:literal)?;)+ })+) => {
        vec![$((
            $name,
            vec![$($crate::bootstrap::rule::rule!($verbs $groups $resources $($names)?)),+],
        )),+]
    };
}

/// Makes the rule of a row of a [`table!`].
macro_rules! rule {
    ($verbs:tt paths $paths:tt) => {
        $crate::bootstrap::rule::path_rule($verbs, $paths)
    };
    ($verbs:tt $groups:tt $resources:tt) => {
        $crate::bootstrap::rule::resource_rule($verbs, $groups, $resources, "")
    };
    ($verbs:tt $groups:tt $resources:tt $names:literal) => {
        $crate::bootstrap::rule::resource_rule($verbs, $groups, $resources, $names)
    };
}

pub(super) use {rule, table};

/// Returns a rule for resources; without `names`, for objects of all names.
pub fn resource_rule(verbs: &str, groups: &str, resources: &str, names: &str) -> PolicyRule {
    let groups = words(groups).into_iter().map(|group| match &*group {
        "core" => String::new(),
        _ => group,
    });
    PolicyRule {
        verbs: words(verbs),
        api_groups: groups.collect(),
        resources: words(resources),
        resource_names: words(names),
        ..PolicyRule::default()
    }
}

/// Returns a rule for paths that are not those of resources.
pub fn path_rule(verbs: &str, paths: &str) -> PolicyRule {
    PolicyRule {
        verbs: words(verbs),
        non_resource_urls: words(paths),
        ..PolicyRule::default()
    }
}

/// Returns the words in the order in which Kubernetes stores them, so that the objects of both are equal.
fn words(list: &str) -> Vec<String> {
    let mut words: Vec<_> = list.split_whitespace().map(str::to_owned).collect();
    words.sort_unstable();
    words
}
