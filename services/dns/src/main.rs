//! The `dns` binary.

fn main() -> std::process::ExitCode {
    setpoint_dns::main()
}
