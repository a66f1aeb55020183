//! The names under which the program is called.

#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use setpoint_ctl::launcher::topology::SERVICES;

const PROGRAM: &str = env!("CARGO_BIN_EXE_multicall");

/// Installs the names in a new folder beside the program: hard links must not leave its file system.
fn installed(folder: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
    std::fs::create_dir_all(&folder).unwrap();
    let installing = Command::new(PROGRAM).arg("install").arg(&folder).status();
    assert!(installing.unwrap().success());
    folder
}

fn help(program: &Path) -> String {
    let output = Command::new(program).arg("--help").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn each_name_is_that_program() {
    let folder = installed("names");
    for service in SERVICES {
        let help = help(&folder.join(service));
        assert!(help.contains(&format!("Usage: {service}")), "{help}");
    }
    assert!(help(&folder.join("setpoint")).contains("Usage: setpoint"));
}

#[test]
fn a_program_that_runs_itself_keeps_its_name_though_it_was_replaced() {
    let folder = installed("replaced");
    let agent = folder.join("node-agent");
    let script = format!(
        "exec {} pause & sleep 0.2; {PROGRAM} install {}; /proc/$!/exe sweep; status=$?; kill $!; exit $status",
        agent.display(),
        folder.display()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("usage: node-agent sweep"), "{text}");
}

#[test]
fn a_program_is_not_another_whose_name_ends_its_argument_0() {
    let agent = installed("placeholder").join("node-agent");
    let output = Command::new(agent)
        .arg0("placeholder for example.com/gateway")
        .arg("sweep")
        .output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("usage: node-agent sweep"), "{text}");
}

#[test]
fn a_link_with_a_name_is_that_program() {
    let folder = installed("links");
    let link = folder.join("linked").join("gateway");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
    assert!(help(&link).contains("Usage: gateway"));
}

#[test]
fn under_its_own_name_it_only_installs() {
    let run = |args: &[&str]| -> Output { Command::new(PROGRAM).args(args).output().unwrap() };
    for args in [&[][..], &["gateway"], &["install"]] {
        let output = run(args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(64), "{text}");
        assert!(
            text.starts_with("usage: multicall install <folder>"),
            "{text}"
        );
    }
    let output = run(&["install", "/nowhere"]);
    assert_eq!(output.status.code(), Some(1));
}
