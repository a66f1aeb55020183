//! Transcripts of kubectl: commands, and all that they print.
//!
//! ```text
//! # A comment.
//! $ auth can-i get pods --as=jane
//! no
//! [1]
//! ```
//! Below a command are its standard output, its standard error, and its exit code if that is not 0. Lines that begin
//! with `| ` are a manifest, which the command reads by `-f`, and whose path is shown as `FILE`. With `UPDATE_EXPECT=1`
//! the text is replaced by what the commands printed.

use std::fmt::Write as _;
use std::path::PathBuf;

use setpoint_tests::Kubectl;

const UPDATE: &str = "UPDATE_EXPECT";

/// Runs the commands of `tests/e2e/clients/<name>.txt`, and compares what they print.
pub fn check(kubectl: &Kubectl, name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = path.join(format!("e2e/clients/{name}.txt"));
    let expected = std::fs::read_to_string(&path).expect("there is the transcript");
    let printed = run(kubectl, &expected);
    if printed == expected {
        return;
    }
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, printed).expect("it is writable");
        return;
    }
    let mut lines = printed.lines().zip(expected.lines());
    let at = lines.position(|(new, old)| new != old).unwrap_or_default();
    let around = |text: &str| {
        let shown = text.lines().skip(at.saturating_sub(3)).take(12);
        shown.collect::<Vec<_>>().join("\n")
    };
    panic!(
        "{}, line {}: expected:\n{}\n\nprinted:\n{}\n\nif this is as it should be, run again with {UPDATE}=1",
        path.display(),
        at + 1,
        around(&expected),
        around(&printed)
    );
}

/// Returns the transcript with what the commands print now.
fn run(kubectl: &Kubectl, text: &str) -> String {
    let (mut printed, mut lines) = (String::new(), text.lines().peekable());
    while let Some(line) = lines.next() {
        let Some(command) = line.strip_prefix("$ ") else {
            // What an earlier run printed.
            if line.is_empty() || line.starts_with('#') {
                writeln!(printed, "{line}").expect("a String takes any text");
            }
            continue;
        };
        writeln!(printed, "{line}").expect("a String takes any text");
        let mut manifest = String::new();
        while let Some(line) = lines.next_if(|line| line.starts_with("| ")) {
            writeln!(printed, "{line}").expect("a String takes any text");
            manifest += &format!("{}\n", &line[2..]);
        }
        let output = match manifest.is_empty() {
            true => kubectl.run(command),
            false => kubectl.with(command, &manifest),
        };
        for stream in [&output.stdout, &output.stderr] {
            for line in stream.lines() {
                // An empty line would end the answer.
                let line = if line.is_empty() { "." } else { line };
                writeln!(printed, "{}", without_file(line).trim_end())
                    .expect("a String takes any text");
            }
        }
        if output.code != 0 {
            writeln!(printed, "[{}]", output.code).expect("a String takes any text");
        }
    }
    printed
}

/// Returns a line without the path of the manifest, which each run has another of.
fn without_file(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let path = word
            .strip_prefix("\"/")
            .and_then(|path| path.split_once(".yaml\""));
        path.map_or(word.to_owned(), |(_, rest)| format!("\"FILE\"{rest}"))
    });
    words.collect::<Vec<_>>().join(" ")
}
