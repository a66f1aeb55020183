//! The `scheduler` binary.

fn main() -> std::process::ExitCode {
    setpoint_scheduler::main()
}
