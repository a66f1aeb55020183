//! The output of commands in the README is the one that they print.

use setpoint_tests::{Cluster, Size, eventually};

/// Returns the output that the README shows below the last command of a block.
fn shown(command: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
    let readme = std::fs::read_to_string(path).expect("the README can be read");
    let (_, below) = readme
        .split_once(&format!("\n{command}\n```\n"))
        .unwrap_or_else(|| panic!("no block that ends with the command: {command}"));
    let block = below.split_once("```text\n").expect("a block of output").1;
    let (text, _) = block.split_once("```\n").expect("the end of the block");
    text.to_owned()
}

#[test]
fn the_readme_shows_what_kubectl_prints() {
    let cluster = Cluster::bare();
    let kubectl = cluster.kubectl();
    for command in [
        "explain deployment.spec.strategy",
        "create deployment shop.web --image=nginx",
    ] {
        let output = kubectl.run(command);
        let printed = format!("{}{}", output.stderr, output.stdout);
        let lines = |text: &str| {
            text.lines()
                .map(str::trim_end)
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert_eq!(
            lines(printed.trim_end()),
            lines(shown(&format!("kubectl {command}")).trim_end())
        );
    }
}

/// Returns the lines of an explanation that do not depend on when it is asked for: the heads of its sections, and what
/// the object waits for, without numbers and random names.
fn outline(why: &str) -> Vec<String> {
    let mut waits = false;
    let lines = why.lines().filter(|line| {
        let is_head = !line.starts_with(' ');
        waits = line.starts_with("Waits for") || (waits && !is_head);
        is_head || waits
    });
    let words = |line: &str| {
        let words = line.split_whitespace();
        let words = words.filter(|word| !word.contains(|letter: char| letter.is_ascii_digit()));
        words.collect::<Vec<_>>().join(" ")
    };
    lines.map(words).collect()
}

#[test]
fn the_readme_shows_what_why_says() {
    let cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 1,
        ..Size::default()
    });
    let kubectl = cluster.kubectl();
    for command in [
        "create namespace team",
        "create quota small -n team --hard=pods=1",
        "create deployment web -n team --image=nginx --replicas=2",
    ] {
        kubectl.ok(command);
    }
    let why = "why deploy/web -n team";
    let expected = outline(&shown(&format!("setpoint {why}")));
    assert_eq!(expected.len(), 12, "{expected:?}");
    eventually("the explanation is that of the README", || {
        let found = outline(&cluster.setpoint_at(0, why).stdout);
        (found == expected)
            .then_some(())
            .ok_or_else(|| format!("{found:?}, not {expected:?}"))
    });
}
