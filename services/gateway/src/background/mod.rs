//! Background tasks of the gateway: what kube-apiserver does itself. Each is restarted after a panic, and reports when
//! it keeps failing.
//!
//! Every gateway runs them; they elect no leader. Loops that upstream's controller manager runs are controllers with
//! Leases (`controller-manager`), except those of the status of policies, which needs the gateway's compiler of
//! expressions, of tokens in Secrets, which needs the keys that sign, and of the aggregation of roles.

mod account_tokens;
mod aggregation;
mod api_services;
mod attempts;
mod audit_policy;
mod bootstrap_roles;
mod cache_differences;
mod cluster_info;
mod cluster_signer;
mod configurations;
mod custom_resource_definitions;
mod encryption;
mod expiring_certificates;
mod extension_authentication;
mod flow_control;
mod kept;
mod kubernetes_service;
mod legacy_token_tracking;
mod policy_status;
mod revoked_nodes;
mod role_aggregation;
mod settings_file;
mod system_objects;
mod ttl;
mod warning;

use std::sync::Arc;
use std::time::Duration;

use setpoint_task::supervise;
use tokio_util::sync::CancellationToken;

use crate::registry::Registry;

/// The names of the health checks of the initial objects, as in kube-apiserver.
const INITIAL_OBJECTS: [&str; 3] = [
    "poststarthook/bootstrap-controller",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/start-system-namespaces-controller",
];

/// The name of the health check of the roles of every cluster, as in kube-apiserver.
const BOOTSTRAP_ROLES: &str = "poststarthook/rbac/bootstrap-roles";

impl Registry {
    /// Creates the objects that every cluster has; then runs the deletion of expired objects, and the loops that keep
    /// these objects, priority and fairness, the status of definitions, APIServices and their availability, the
    /// ConfigMap for other API servers, tokens in Secrets and the record of their use, the Service `kubernetes`, and
    /// the end of connections of deleted Nodes, until `shutdown`.
    ///
    /// With the mode RBAC, it also creates the roles and bindings that every cluster has, and aggregates ClusterRoles.
    ///
    /// An Event expires `event_ttl` after its last write. `report` returns, for the name of a task, the callback for
    /// the health of the task; those of the initial objects get `Ok` once they exist.
    pub async fn run_background<R>(
        self: Arc<Self>,
        event_ttl: Duration,
        shutdown: CancellationToken,
        report: impl Fn(&'static str) -> R,
    ) where
        R: Fn(Result<(), String>),
    {
        let initial = INITIAL_OBJECTS.map(&report);
        let (expiry, permanent) = (report("expiry"), report("system-objects"));
        let service = report("kubernetes-service");
        let definitions = report("custom-resource-definitions");
        let (services, policies) = (report("api-services"), report("policy-status"));
        let (fairness, revoked) = (report("flow-control"), report("revoked-nodes"));
        let (tokens, uses) = (report("account-tokens"), report("legacy-token-tracking"));
        let (servers, authentication) = (report("aggregation"), report("extension-authentication"));
        let uses_rbac = self.authorizer().rbac().is_some();
        let roles = uses_rbac.then(|| (report(BOOTSTRAP_ROLES), report("role-aggregation")));
        let work = async {
            self.cache().synced().await;
            let failing = |state: Result<(), String>| {
                if state.is_err() {
                    initial.iter().for_each(|report| report(state.clone()));
                }
            };
            supervise("namespaces", failing, || self.create_system_objects()).await;
            initial.iter().for_each(|report| report(Ok(())));
            tokio::join!(
                Box::pin(self.keep_roles(roles)),
                supervise("expiry", expiry, || ttl::run(&self, event_ttl)),
                supervise("system-objects", permanent, || {
                    Box::pin(self.keep_system_objects())
                }),
                // Boxed, since the futures of the loops are large together.
                supervise("custom-resource-definitions", definitions, || {
                    Box::pin(custom_resource_definitions::run(&self))
                }),
                supervise("api-services", services, || Box::pin(api_services::run(
                    &self
                ))),
                supervise("aggregation", servers, || Box::pin(aggregation::run(&self))),
                supervise("extension-authentication", authentication, || {
                    Box::pin(extension_authentication::run(&self))
                }),
                supervise("account-tokens", tokens, || {
                    Box::pin(account_tokens::run(&self))
                }),
                supervise("legacy-token-tracking", uses, || {
                    Box::pin(legacy_token_tracking::run(&self))
                }),
                supervise("flow-control", fairness, || {
                    Box::pin(flow_control::run(&self))
                }),
                supervise("policy-status", policies, || {
                    Box::pin(policy_status::run(&self))
                }),
                supervise("revoked-nodes", revoked, || {
                    Box::pin(self.end_connections_of_deleted_nodes())
                }),
                supervise("kubernetes-service", service, || {
                    Box::pin(kubernetes_service::run(&self))
                }),
            );
        };
        shutdown.run_until_cancelled(work).await;
        Box::pin(kubernetes_service::release(&self)).await;
    }

    /// Completes the roles of every cluster, and keeps those that are aggregated; nothing without reports.
    async fn keep_roles<R>(&self, reports: Option<(R, R)>)
    where
        R: Fn(Result<(), String>),
    {
        let Some((bootstrap, aggregation)) = reports else {
            return;
        };
        bootstrap(Err("the roles of every cluster do not exist yet".into()));
        let failing = |state: Result<(), String>| {
            if state.is_err() {
                bootstrap(state);
            }
        };
        supervise("bootstrap-roles", failing, || bootstrap_roles::ensure(self)).await;
        bootstrap(Ok(()));
        let aggregating = || Box::pin(role_aggregation::run(self));
        supervise("role-aggregation", aggregation, aggregating).await;
    }
}
