//! Runs several controllers in one process.

mod settings;

use std::process::ExitCode;

use setpoint_controller::{AnyHosted, Configured};
use setpoint_host as host;

pub use settings::{Choice, Controllers};

/// All controllers that the process can run.
pub const CONTROLLERS: &[&dyn AnyHosted] = &[
    &setpoint_bootstraptoken_controller::cleaner::CONTROLLER,
    &setpoint_bootstraptoken_controller::signer::CONTROLLER,
    &setpoint_certificatesigningrequest_controller::CONTROLLER,
    &setpoint_cronjob_controller::CONTROLLER,
    &setpoint_daemonset_controller::CONTROLLER,
    &setpoint_deployment_controller::CONTROLLER,
    &setpoint_disruption_controller::CONTROLLER,
    &setpoint_endpointslice_controller::CONTROLLER,
    &setpoint_garbage_collector_controller::CONTROLLER,
    &setpoint_horizontalpodautoscaler_controller::CONTROLLER,
    &setpoint_job_controller::CONTROLLER,
    &setpoint_namespace_controller::CONTROLLER,
    &setpoint_node_ipam_controller::CONTROLLER,
    &setpoint_node_lifecycle_controller::CONTROLLER,
    &setpoint_node_lifecycle_controller::TAINT_EVICTION,
    &setpoint_persistentvolume_controller::claim::CONTROLLER,
    &setpoint_persistentvolume_controller::volume::CONTROLLER,
    &setpoint_podgc_controller::CONTROLLER,
    &setpoint_replicaset_controller::CONTROLLER,
    &setpoint_replicaset_controller::REPLICATION_CONTROLLER,
    &setpoint_resourcequota_controller::CONTROLLER,
    &setpoint_service_cidrs_controller::CONTROLLER,
    &setpoint_service_lb_controller::CONTROLLER,
    &setpoint_serviceaccount_controller::account::CONTROLLER,
    &setpoint_serviceaccount_controller::legacy_token::CONTROLLER,
    &setpoint_serviceaccount_controller::root_ca::CONTROLLER,
    &setpoint_statefulset_controller::CONTROLLER,
];

/// Runs the process.
#[tokio::main(worker_threads = 2)]
pub async fn main() -> ExitCode {
    host::run_with(
        "controller-manager",
        Controllers,
        |host, settings, chosen| Configured::start_all(chosen, host, settings),
    )
    .await
}
