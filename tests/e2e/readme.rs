//! The output of kubectl in the README is the one that kubectl prints.

use setpoint_tests::Cluster;

/// Returns the output that the README shows below a command.
fn shown(command: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md");
    let readme = std::fs::read_to_string(path).expect("the README can be read");
    let (_, below) = readme
        .split_once(&format!("\nkubectl {command}\n```\n"))
        .unwrap_or_else(|| panic!("no block with the command alone: {command}"));
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
        assert_eq!(lines(printed.trim_end()), lines(shown(command).trim_end()));
    }
}
