//! The `controller-manager` binary.

fn main() -> std::process::ExitCode {
    setpoint_controller_manager::main()
}
