//! The ends of a stream are killed: the client, its gateway, and the agent.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use setpoint_testkit::processes_with;
use setpoint_tests::{Cluster, Kubectl, Size, eventually};

use crate::node_pressure::{SLEEP, has_phase, pod, until};
use crate::workloads::create;

/// The others end with an error, nothing of the command is left, and the container goes on.
#[test]
fn a_command_ends_when_its_client_its_gateway_or_its_agent_is_killed() {
    let mut cluster = Cluster::start(Size {
        process_nodes: 1,
        simulated_nodes: 0,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    create(&kubectl, &pod("web", "", SLEEP));
    until(&kubectl, "web", has_phase("Running"));
    for (number, victim) in ["client", "gateway-0", "node-agent-0"].iter().enumerate() {
        // A number of seconds that no other process sleeps.
        let mark = format!("1000.{}{number}", std::process::id());
        let mut client = exec(&kubectl, &mark);
        match *victim {
            "client" => client.kill().expect("it runs"),
            service => cluster.process(service).kill(),
        }
        let ended = eventually("the client ends", || {
            let ended = client.try_wait().map_err(|error| error.to_string())?;
            ended.ok_or_else(|| "it runs".to_owned())
        });
        assert!(!ended.success(), "{victim}: {ended}");
        eventually("the command ends", || match processes_with(&mark) {
            0 => Ok(()),
            left => Err(format!("{left} of its processes")),
        });
        if *victim != "client" {
            let mut said = String::new();
            let stderr = client.stderr.as_mut().expect("it is a pipe");
            stderr.read_to_string(&mut said).expect("it is text");
            assert!(said.to_lowercase().contains("error"), "{victim}: {said:?}");
            cluster.process(victim).restart();
        }
        eventually("commands run again", || {
            let output = kubectl.run("exec web -- echo again");
            (output.stdout == "again\n")
                .then_some(())
                .ok_or(output.stderr)
        });
    }
    let web = kubectl.json("get pod web");
    assert_eq!(web["status"]["containerStatuses"][0]["restartCount"], 0);
}

/// Runs a command that ignores the end of its streams and requests to stop; returns its client once it has begun.
fn exec(kubectl: &Kubectl, mark: &str) -> Child {
    let script = format!("trap '' HUP TERM PIPE; echo begun; setsid sleep {mark} & sleep {mark}");
    let mut command: Command = kubectl.command("exec -i web -- sh -c");
    command
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut client = command.spawn().expect("kubectl is installed");
    let mut first = String::new();
    let stdout = client.stdout.as_mut().expect("it is a pipe");
    let read = BufReader::new(stdout).read_line(&mut first);
    read.expect("the command writes");
    assert_eq!(first, "begun\n");
    client
}
