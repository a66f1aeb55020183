//! The permissions of services and controllers by the roles of every cluster, and their limits.

use setpoint_rbac::bootstrap::{cluster_role_bindings, cluster_roles, role_bindings, roles};
use setpoint_rbac::{Index, Request, Resource, Target, User};

/// Returns an index of the roles of every cluster.
pub fn index() -> Index {
    let mut index = Index::default();
    cluster_roles()
        .into_iter()
        .for_each(|one| index.upsert_cluster_role(one));
    cluster_role_bindings()
        .into_iter()
        .for_each(|one| index.upsert_cluster_role_binding(one));
    roles().into_iter().for_each(|one| index.upsert_role(one));
    role_bindings()
        .into_iter()
        .for_each(|one| index.upsert_role_binding(one));
    index
}

/// Returns whether a service may do something: a verb, and a resource such as `deployments.apps/status`, perhaps with a
/// name, and in a namespace after `@`.
fn may(index: &Index, service: &str, asked: &str) -> bool {
    let (asked, namespace) = asked.split_once('@').unwrap_or((asked, "default"));
    let mut words = asked.split_whitespace();
    let (verb, resource) = (words.next().unwrap(), words.next().unwrap());
    let name = words.next().unwrap_or_default();
    let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
    let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
    let groups = [
        "system:setpoint".to_owned(),
        "system:authenticated".to_owned(),
    ];
    let user = format!("system:setpoint:{service}");
    let target = Resource {
        group,
        resource,
        subresource,
        name,
        namespace,
    };
    let request = Request {
        user: User {
            name: &user,
            groups: &groups,
        },
        verb,
        target: Target::Resource(target),
    };
    index.decide(request).allowed()
}

#[test]
fn a_service_may_do_its_work() {
    let index = index();
    for (service, asked) in [
        ("deployment-controller", "create replicasets.apps"),
        (
            "deployment-controller",
            "update deployments.apps/status web",
        ),
        (
            "deployment-controller",
            "update leases.coordination.k8s.io deployment-controller @setpoint-system",
        ),
        ("replicaset-controller", "delete pods web-1"),
        ("scheduler", "create pods/binding web-1"),
        ("scheduler", "watch nodes @"),
        ("dns", "watch endpointslices.discovery.k8s.io @"),
        (
            "dns",
            "delete endpointslices.discovery.k8s.io kube-dns-dns-1 @kube-system",
        ),
        (
            "controller-manager",
            "impersonate users system:setpoint:job-controller @",
        ),
        (
            "controller-manager",
            "watch leases.coordination.k8s.io @setpoint-system",
        ),
        (
            "horizontalpodautoscaler-controller",
            "update deployments.apps/scale web",
        ),
        (
            "horizontalpodautoscaler-controller",
            "get widgets.acme.io/scale web",
        ),
        ("garbage-collector-controller", "watch *.* @"),
        ("namespace-controller", "list *.*"),
        (
            "certificatesigningrequest-controller",
            "get secrets cluster-signer @setpoint-system",
        ),
        (
            "node-lifecycle-controller",
            "watch leases.coordination.k8s.io @kube-node-lease",
        ),
        (
            "scheduler",
            "create leases.coordination.k8s.io @setpoint-replicas",
        ),
    ] {
        assert!(may(&index, service, asked), "{service} may not {asked}");
    }
}

#[test]
fn a_service_may_not_do_the_work_of_others() {
    let index = index();
    for (service, asked) in [
        ("deployment-controller", "create pods"),
        ("deployment-controller", "update deployments.apps web"),
        (
            "deployment-controller",
            "update replicasets.apps/status web-1",
        ),
        (
            "deployment-controller",
            "update leases.coordination.k8s.io scheduler @setpoint-system",
        ),
        ("replicaset-controller", "create pods/binding web-1"),
        ("replicaset-controller", "update pods/status web-1"),
        ("replicaset-controller", "create pods/exec web-1"),
        ("scheduler", "create pods"),
        ("dns", "create endpointslices.discovery.k8s.io"),
        ("dns", "watch secrets @kube-system"),
        ("scheduler", "get secrets token"),
        ("scheduler", "patch nodes a @"),
        ("controller-manager", "create pods"),
        ("controller-manager", "get pods web-1"),
        ("controller-manager", "watch secrets @"),
        (
            "controller-manager",
            "impersonate users system:setpoint:scheduler @",
        ),
        ("controller-manager", "impersonate users system:admin @"),
        ("controller-manager", "impersonate groups system:masters @"),
        ("job-controller", "watch pods @"),
        (
            "job-controller",
            "impersonate users system:setpoint:cronjob-controller @",
        ),
        ("node-lifecycle-controller", "delete pods web-1"),
        ("podgc-controller", "delete nodes a @"),
        (
            "serviceaccount-controller",
            "create serviceaccounts/token default",
        ),
        (
            "root-ca-certificate-publisher-controller",
            "update configmaps web",
        ),
        ("certificatesigningrequest-controller", "get secrets token"),
        (
            "certificatesigningrequest-controller",
            "get secrets front-proxy @setpoint-system",
        ),
        ("resourcequota-controller", "delete pods web-1"),
        ("namespace-controller", "create pods"),
        (
            "garbage-collector-controller",
            "create clusterrolebindings.rbac.authorization.k8s.io @",
        ),
        ("gateway", "get pods web-1"),
    ] {
        assert!(!may(&index, service, asked), "{service} may {asked}");
    }
}
