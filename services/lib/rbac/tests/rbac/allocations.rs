//! Decisions allocate nothing, whatever the number of bindings.

use allocation_counter::measure;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::rbac::{RoleBinding, RoleRef, Subject};
use setpoint_rbac::{Index, Request, Resource, Target, User};

use crate::services::index;

/// Returns the roles of every cluster, and so many bindings of `view`, each for a user of its own in a namespace of its
/// own.
fn with_bindings(number: usize) -> Index {
    let mut index = index();
    for n in 0..number {
        index.upsert_role_binding(RoleBinding {
            metadata: ObjectMeta {
                namespace: format!("team-{n}"),
                name: "view".into(),
                ..ObjectMeta::default()
            },
            role_ref: RoleRef {
                kind: "ClusterRole".into(),
                name: "system:aggregate-to-view".into(),
                ..RoleRef::default()
            },
            subjects: vec![Subject {
                kind: "User".into(),
                name: format!("user-{n}"),
                ..Subject::default()
            }],
        });
    }
    index
}

#[test]
fn a_decision_allocates_nothing() {
    for number in [10, 10_000] {
        let index = with_bindings(number);
        let groups = ["readers".to_owned(), "system:authenticated".to_owned()];
        let user = User {
            name: "user-7",
            groups: &groups,
        };
        let pod = Target::Resource(Resource {
            resource: "pods",
            name: "web",
            namespace: "team-7",
            ..Resource::default()
        });
        for (verb, target, allowed) in [
            ("get", pod, true),
            ("delete", pod, false),
            ("get", Target::Path("/version"), true),
            ("get", Target::Path("/metrics/one"), false),
        ] {
            let request = Request { user, verb, target };
            let mut decided = None;
            let allocated = measure(|| decided = Some(index.decide(request).allowed()));
            assert_eq!(decided, Some(allowed), "{verb} {target:?}");
            assert_eq!(
                allocated.count_total, 0,
                "{verb} {target:?}, {number} bindings"
            );
        }
    }
}
