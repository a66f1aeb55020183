//! The Python client `kubernetes`, as its users write it: `python.py`.

use std::process::Command;

use setpoint_tests::{Cluster, Size};

use super::{client, succeed};

#[test]
fn the_python_client_works_unmodified() {
    let Some(python) = client("python") else {
        return;
    };
    let cluster = Cluster::start(Size {
        process_nodes: 0,
        ..Size::default()
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/e2e/clients/python.py");
    let output = succeed(Command::new(python).arg(script), cluster.directory());
    assert!(output.ends_with("done\n"), "{output}");
}
