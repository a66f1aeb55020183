//! `kubectl auth`, `certificate`, `create role` and its siblings, and `create token`, text by text.

use setpoint_tests::Cluster;

use super::transcript::check;

#[test]
fn kubectl_tells_who_may_do_what() {
    let cluster = Cluster::bare();
    check(&cluster.kubectl(), "kubectl_auth_can_i");
}

#[test]
fn kubectl_reconciles_roles() {
    let cluster = Cluster::bare();
    check(&cluster.kubectl(), "kubectl_auth_reconcile");
}

#[test]
fn kubectl_creates_roles_bindings_and_tokens() {
    let cluster = Cluster::bare();
    check(&cluster.kubectl(), "kubectl_create_roles");
}

#[test]
fn kubectl_approves_and_denies_certificates() {
    let cluster = Cluster::bare();
    check(&cluster.kubectl(), "kubectl_certificate");
}
