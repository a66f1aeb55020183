//! The methods, and the permission that each needs.
//!
//! Some writes ask a second question, over HTTP, too: an update or an apply that creates its object (`create`), and a
//! `Binding` in the collection (`create` on `pods/binding`).

use setpoint_model::Verb;

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Method {
    /// The full name, such as `setpoint.v1.Objects/Get`.
    name: &'static str,
    /// The verb in metrics and for flow control.
    pub(super) verb: Verb,
    /// The verb that the caller must be allowed.
    pub(super) permission: &'static str,
    /// The resource on which it is needed.
    pub(super) scope: Scope,
}

/// The resource of a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The object, the subresource or the collection that the message names.
    Target,
    /// The resource `*` of the group `*`, in the namespaces that the message names or in all.
    AllKinds,
    /// Each kind that the message names.
    EachKind,
    /// The metric, as in the APIs of metrics over HTTP.
    Metric,
    /// The path of the call, which is about no resource.
    Path,
}

macro_rules! methods {
    ($($constant:ident $name:literal $verb:ident $permission:literal $scope:ident;)+) => {
        $(pub(super) const $constant: Method = Method {
            name: $name,
            verb: Verb::$verb,
            permission: $permission,
            scope: Scope::$scope,
        };)+

        #[cfg(test)]
        const ALL: &[Method] = &[$($constant),+];
    };
}

methods! {
//  constant         method                         metrics permission
    GET              "setpoint.v1.Objects/Get"      Get     "get"    Target;
    LIST             "setpoint.v1.Objects/List"     List    "list"   Target;
    CREATE           "setpoint.v1.Objects/Create"   Create  "create" Target;
    UPDATE           "setpoint.v1.Objects/Update"   Update  "update" Target;
    PATCH            "setpoint.v1.Objects/Patch"    Patch   "patch"  Target;
    DELETE           "setpoint.v1.Objects/Delete"   Delete  "delete" Target;
    WATCH            "setpoint.v1.Objects/Watch"    Watch   "watch"  Target;
    // And the same on each owner that the object refers to.
    GET_METADATA     "setpoint.v1.Metadata/Get"     Get     "get"    Target;
    LIST_METADATA    "setpoint.v1.Metadata/List"    List    "list"   AllKinds;
    COUNT_METADATA   "setpoint.v1.Metadata/Count"   List    "list"   EachKind;
    WATCH_METADATA   "setpoint.v1.Metadata/Watch"   Watch   "watch"  AllKinds;
    REMOVE_METADATA  "setpoint.v1.Metadata/Remove"  Patch   "patch"  Target;
    // Of other objects, the response has those that the caller may read.
    WHY              "setpoint.v1.Explain/Why"      List    "get"    Target;
    HISTORY          "setpoint.v1.Explain/History"  List    "get"    Target;
    CUSTOM_METRICS   "setpoint.v1.Metrics/Custom"   Get     "get"    Metric;
    EXTERNAL_METRICS "setpoint.v1.Metrics/External" Get     "get"    Metric;
    REFLECTION       "grpc.reflection.v1.ServerReflection/ServerReflectionInfo" Get "post" Path;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use prost_reflect::DescriptorPool;
    use setpoint_proto::COMMENTED_DESCRIPTORS;

    use super::*;

    /// The services of other processes.
    const ELSEWHERE: [&str; 2] = ["setpoint.v1.Node", "setpoint.v1.Reconciles"];

    #[test]
    fn every_method_that_the_gateway_serves_has_a_permission() {
        let pool = DescriptorPool::decode(COMMENTED_DESCRIPTORS).unwrap();
        let mut methods = BTreeSet::from([REFLECTION.name.to_owned()]);
        for service in pool.services() {
            if ELSEWHERE.contains(&service.full_name()) {
                continue;
            }
            let full = |name: &str| format!("{}/{name}", service.full_name());
            methods.extend(service.methods().map(|method| full(method.name())));
        }
        let table: BTreeSet<_> = ALL.iter().map(|method| method.name.to_owned()).collect();
        assert_eq!(table, methods);
        assert_eq!(table.len(), ALL.len());
    }
}
