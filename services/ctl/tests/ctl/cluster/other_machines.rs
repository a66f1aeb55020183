//! Agents of machines with the name of another one, or with another clock; and agents whose cluster changes its CAs.

use std::fs;
use std::process::Command;

use crate::cluster::agent_machine::{AgentMachine, create, create_pod, kubectl};
use crate::cluster::harness::{Cluster, eventually, refusal, stdout_of};

/// Two machines of one name, with tokens that were made before either had joined.
#[test]
fn a_second_machine_of_the_name_of_a_node_is_refused_and_the_first_one_goes_on() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    let commands = [(); 2].map(|()| create(&cluster, "worker-1", &[]));
    let (first, second) = (
        AgentMachine::new(&cluster, "first"),
        AgentMachine::new(&cluster, "second"),
    );
    stdout_of(&first.follow(&commands[0]));
    let why = second.refused(&commands[1]);
    let expected = "a Node with name \"worker-1\" and status \"Ready\" already exists in the cluster. You must delete \
                    the existing Node or change the name of this new joining Node";
    assert!(why.contains(expected), "{why}");
    assert!(!second.state.join("join/worker-1").exists());
    stdout_of(&first.run(&["status"]));
    create_pod(&cluster);
    eventually("a Pod of the first one runs", || {
        let phase = kubectl(&cluster, "get pod on-worker -o jsonpath={.status.phase}");
        (phase.stdout == b"Running").then_some(())
    });
}

/// Nothing has joined, and the token is as good as before.
#[test]
fn a_machine_with_another_clock_is_told_so() {
    if Command::new("faketime").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no clock can be set (Debian: apt-get install faketime)");
        return;
    }
    let cluster = Cluster::new();
    cluster.up(&[]);
    let machine = AgentMachine::new(&cluster, "machine");
    let command = create(&cluster, "worker-1", &[]);
    for (ahead, expected) in [
        ("+1h", "1h ahead of"),
        ("-1h", "1h behind"),
        ("+1d", "24h ahead of"),
        ("-1d", "24h behind"),
    ] {
        let mut join = Command::new("faketime");
        join.args(["-f", ahead, env!("CARGO_BIN_EXE_setpoint"), "--state"])
            .arg(&machine.state)
            .args(command.split(' ').skip(1));
        let why = refusal(&join.current_dir(cluster.root.path()).output().unwrap());
        // The answer may come a second later, by either clock.
        let is_told = why.contains("the clock of this machine is ")
            && (why.contains(expected) || why.contains(" 59m ") || why.contains(" 1s "));
        assert!(is_told && why.contains("valid by the clock"), "{why}");
        assert!(!machine.state.join("join/worker-1").exists());
    }
    stdout_of(&machine.follow(&command));
}

/// The CAs of the cluster are changed: the agent trusts the new one before the old one goes.
#[test]
fn an_agent_that_has_joined_follows_a_change_of_the_cas() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    let machine = AgentMachine::new(&cluster, "machine");
    stdout_of(&machine.follow(&create(&cluster, "worker-1", &[])));
    let trusted = || fs::read_to_string(machine.state.join("join/worker-1/ca.crt")).unwrap();
    let count = || trusted().matches("BEGIN CERTIFICATE").count();
    let before = trusted();
    stdout_of(&cluster.run(&["certs", "--rotate-ca"]));
    // At once: the command waits for agents.
    stdout_of(&cluster.run(&["certs", "--remove-old-ca"]));
    eventually("the agent trusts the new CA alone", || {
        (count() == 1).then_some(())
    });
    assert_ne!(trusted(), before);
    create_pod(&cluster);
    eventually("the gateway reaches the agent", || {
        let run = kubectl(&cluster, "exec on-worker -- echo here");
        (run.stdout == b"here\n").then_some(())
    });
    stdout_of(&machine.run(&["down"]));
    stdout_of(&machine.run(&["up"]));
    eventually("the agent reports with its certificate", || {
        let ready =
            "get node worker-1 -o jsonpath={.status.conditions[?(@.type==\"Ready\")].status}";
        (kubectl(&cluster, ready).stdout == b"True").then_some(())
    });
}
