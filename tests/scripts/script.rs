//! A script: commands, and the text that each is expected to print.

use std::cell::OnceCell;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, thread};

use tokio::time::Instant;

use crate::command::Command;
use crate::plane::Plane;

/// The variable that replaces the expected text.
const UPDATE: &str = "UPDATE_EXPECT";
/// The seed of all random numbers.
const SEED: u64 = 40;
/// The time at which each script begins: the start of 2030, in seconds since 1970.
const EPOCH: Duration = Duration::from_secs(1_893_456_000);

thread_local! {
    static BEGAN: OnceCell<Instant> = const { OnceCell::new() };
}

/// A part of a script.
enum Part {
    /// A comment or an empty line.
    Comment(String),
    /// A command with its line number. Its expected output is compared as a part of the whole text.
    Step { text: String, line: usize },
}

/// Runs a script and compares what it prints with the expected text.
pub fn check(name: &'static str) {
    let path = folder().join(format!("{name}.txt"));
    let text = fs::read_to_string(&path).unwrap();
    // A new thread, which has drawn no random number yet.
    let run = {
        let (name, text) = (format!("tests/scripts/{name}.txt"), text.clone());
        move || run(&name, &text)
    };
    let printed = thread::spawn(run).join().unwrap();
    if printed == text {
        return;
    }
    match env::var_os(UPDATE) {
        Some(_) => fs::write(&path, printed).unwrap(),
        None => panic!(
            "{}:\n{}\nif this is as it should be, run again with {UPDATE}=1",
            path.display(),
            difference(&text, &printed)
        ),
    }
}

/// Returns the names of all scripts, in order.
pub fn names() -> Vec<String> {
    let files = fs::read_dir(folder()).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let scripts = paths.filter(|path| path.extension().is_some_and(|it| it == "txt"));
    let mut names: Vec<_> = scripts
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scripts")
}

/// Returns the script with what it prints now.
fn run(name: &str, text: &str) -> String {
    setpoint_determinism::simulate(SEED, now);
    let parts = parse(name, text);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(async {
        BEGAN.with(|began| began.set(Instant::now())).unwrap();
        let mut plane = Plane::start().await;
        let mut printed = String::new();
        for part in parts {
            match part {
                Part::Comment(line) => writeln!(printed, "{line}").unwrap(),
                Part::Step { text, line } => {
                    let command = parsed(name, line, &text);
                    let output = plane.run(command).await;
                    let output =
                        output.unwrap_or_else(|error| panic!("{name}:{line}: {text}: {error}"));
                    writeln!(printed, "> {text}").unwrap();
                    output
                        .iter()
                        .for_each(|line| writeln!(printed, "  {line}").unwrap());
                }
            }
        }
        printed
    })
}

/// Returns the simulated time since 1970.
fn now() -> Duration {
    let began = BEGAN.with(|began| began.get().copied());
    EPOCH + began.map_or(Duration::ZERO, |began| Instant::now() - began)
}

fn parsed(name: &str, line: usize, text: &str) -> Command {
    text.parse()
        .unwrap_or_else(|error| panic!("{name}:{line}: {error}: {text}"))
}

/// Splits a script into its parts. All commands are parsed, so that a mistake in the last one is found before the first
/// one runs.
fn parse(name: &str, text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for (at, line) in text.lines().enumerate() {
        match (line.strip_prefix("> "), parts.last()) {
            (Some(command), _) => {
                parsed(name, at + 1, command);
                parts.push(Part::Step {
                    text: command.to_owned(),
                    line: at + 1,
                });
            }
            (None, Some(Part::Step { .. })) if line.starts_with("  ") => {}
            (None, _) if line.is_empty() || line.starts_with('#') => {
                parts.push(Part::Comment(line.to_owned()));
            }
            (None, _) => panic!(
                "{name}:{}: neither a comment, a command nor its output: {line}",
                at + 1
            ),
        }
    }
    parts
}

/// Returns the lines that differ, each with a mark, between the equal beginnings and ends.
fn difference(expected: &str, printed: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (expected.lines().collect(), printed.lines().collect());
    let equal = |(old, new): &(&&str, &&str)| old == new;
    let begin = old.iter().zip(&new).take_while(equal).count();
    let rest = old.len().min(new.len()) - begin;
    let end = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(rest)
        .take_while(equal)
        .count();
    let mut text = format!("line {}:\n", begin + 1);
    old[begin..old.len() - end]
        .iter()
        .for_each(|line| writeln!(text, "- {line}").unwrap());
    new[begin..new.len() - end]
        .iter()
        .for_each(|line| writeln!(text, "+ {line}").unwrap());
    text
}
