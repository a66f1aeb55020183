//! The `gateway` binary.

fn main() -> std::process::ExitCode {
    setpoint_gateway::main()
}
