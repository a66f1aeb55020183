//! Runs several controllers in one process.

mod settings;

use std::process::ExitCode;

use setpoint_controller::Hosted;
use setpoint_host as host;

use settings::Settings;

/// All controllers that the process can run.
const CONTROLLERS: &[Hosted] = &[
    setpoint_deployment_controller::CONTROLLER,
    setpoint_replicaset_controller::CONTROLLER,
];

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    host::run("controller-manager", |host, settings: Settings| {
        Hosted::start_all(settings.chosen(), host, settings.runtime())
    })
    .await
}
