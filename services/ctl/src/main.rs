//! The `setpoint` command.

fn main() -> std::process::ExitCode {
    setpoint_ctl::main()
}
