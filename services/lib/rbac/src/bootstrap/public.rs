//! Roles for everyone: discovery, health, questions about oneself, and the keys of ServiceAccount tokens.

use setpoint_proto::rbac::{ClusterRole, ClusterRoleBinding};

use super::object::{cluster_role, cluster_role_binding, group};
use super::rule::{Table, table};

pub fn cluster_roles() -> Vec<ClusterRole> {
    let roles = table().into_iter();
    roles
        .map(|(name, rules)| cluster_role(name, rules))
        .collect()
}

pub fn cluster_role_bindings() -> Vec<ClusterRoleBinding> {
    let authenticated = group("system:authenticated");
    let unauthenticated = group("system:unauthenticated");
    vec![
        cluster_role_binding("system:discovery", vec![authenticated.clone()]),
        cluster_role_binding("system:basic-user", vec![authenticated.clone()]),
        cluster_role_binding(
            "system:public-info-viewer",
            vec![authenticated, unauthenticated],
        ),
        cluster_role_binding("system:monitoring", vec![group("system:monitoring")]),
        cluster_role_binding(
            "system:service-account-issuer-discovery",
            vec![group("system:serviceaccounts")],
        ),
    ]
}

fn table() -> Table {
    table! {
        "system:discovery" {
            "get"  paths  "/api /api/* /apis /apis/* /openapi /openapi/* /version /version/ /livez /readyz /healthz";
        }

        // The only role of users who are not authenticated.
        "system:public-info-viewer" {
            "get"  paths  "/version /version/ /livez /readyz /healthz";
        }

        // Single health checks and the settings of processes tell what is not for everyone.
        "system:monitoring" {
            "get"  paths  "/metrics /metrics/slis /livez /livez/* /readyz /readyz/* /healthz /healthz/* \
                           /flagz /statusz";
            "get"  "core" "nodes/metrics";
        }

        // What users may ask about themselves.
        "system:basic-user" {
            "create"  "authorization.k8s.io"   "selfsubjectaccessreviews selfsubjectrulesreviews";
            "create"  "authentication.k8s.io"  "selfsubjectreviews";
        }

        // Who verifies tokens reads here with which keys they are signed. Older clients ask for paths with a slash at
        // their end.
        "system:service-account-issuer-discovery" {
            "get"  paths  "/.well-known/openid-configuration /.well-known/openid-configuration/ \
                           /openid/v1/jwks /openid/v1/jwks/";
        }
    }
}
