//! Measures decisions of role-based access control, with few bindings and with many.

use std::hint::black_box;
use std::time::Instant;

use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::rbac::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use setpoint_rbac::{Index, Request, Resource, Target, User, bootstrap};

use crate::report::Report;

const BINDINGS: [usize; 2] = [10, 10_000];
const DECISIONS: usize = 10_000;
const ROUNDS: usize = 41;

/// Reports the time of an allowed and of a denied decision. Each binding is of a user in a namespace of its own; the
/// roles of every cluster are there as well.
pub fn measure(report: &mut Report) {
    for number in BINDINGS {
        let (index, namespace, user) = (index(number), namespace(number - 1), name(number - 1));
        let groups = ["system:authenticated".to_owned()];
        for (what, verb) in [("allowed", "get"), ("denied", "delete")] {
            let user = User {
                name: &user,
                groups: &groups,
            };
            let request = request(user, &namespace, verb);
            report.add(
                format!("decision, {what}, {number} bindings"),
                nanoseconds(&index, request),
                "ns",
            );
        }
    }
}

/// Returns the median of the mean time of a decision in each round.
fn nanoseconds(index: &Index, request: Request<'_>) -> f64 {
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            for _ in 0..DECISIONS {
                black_box(index.decide(black_box(request)).allowed());
            }
            begin.elapsed().as_secs_f64() * 1e9 / DECISIONS as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}

fn request<'a>(user: User<'a>, namespace: &'a str, verb: &'a str) -> Request<'a> {
    Request {
        user,
        verb,
        target: Target::Resource(Resource {
            resource: "pods",
            name: "web",
            namespace,
            ..Resource::default()
        }),
    }
}

fn index(bindings: usize) -> Index {
    let mut index = Index::default();
    for role in bootstrap::cluster_roles() {
        index.upsert_cluster_role(role);
    }
    for binding in bootstrap::cluster_role_bindings() {
        index.upsert_cluster_role_binding(binding);
    }
    for number in 0..bindings {
        let metadata = ObjectMeta {
            namespace: namespace(number),
            name: "reader".into(),
            ..ObjectMeta::default()
        };
        index.upsert_role(Role {
            metadata: metadata.clone(),
            rules: vec![reads()],
        });
        index.upsert_role_binding(RoleBinding {
            metadata,
            role_ref: RoleRef {
                kind: "Role".into(),
                name: "reader".into(),
                ..RoleRef::default()
            },
            subjects: vec![Subject {
                kind: "User".into(),
                name: name(number),
                ..Subject::default()
            }],
        });
    }
    index
}

fn reads() -> PolicyRule {
    PolicyRule {
        verbs: ["get", "list", "watch"].map(Into::into).into(),
        api_groups: vec![String::new()],
        resources: ["pods", "services", "configmaps"].map(Into::into).into(),
        ..PolicyRule::default()
    }
}

fn namespace(number: usize) -> String {
    format!("namespace-{number}")
}

fn name(number: usize) -> String {
    format!("user-{number}")
}
