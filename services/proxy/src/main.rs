//! The `proxy` binary.

fn main() -> std::process::ExitCode {
    setpoint_proxy::main()
}
