//! The `node-agent` binary.

fn main() -> std::process::ExitCode {
    setpoint_node_agent::main()
}
