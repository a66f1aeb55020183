//! Replays the stored inputs: seeds of each target, and inputs that have found defects.
#![allow(clippy::unwrap_used, reason = "tests may panic")]

use std::path::PathBuf;
use std::sync::Once;

use setpoint_fuzz::{names, target};

fn inputs(name: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("inputs")
        .join(name);
    let entries = folder
        .read_dir()
        .unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Aborts the process on any panic: one that the gateway catches is a defect, too.
fn fail_on_any_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            report(panic);
            std::process::abort();
        }));
    });
}

fn replay(name: &str) {
    fail_on_any_panic();
    let target = target(name).unwrap();
    for path in inputs(name) {
        println!("{}", path.display());
        target.run(&std::fs::read(path).unwrap());
    }
}

#[test]
fn the_input_folders_are_those_of_the_targets_and_are_not_empty() {
    let mut folders: Vec<_> = inputs("")
        .iter()
        .map(|path| path.file_name().unwrap().to_owned())
        .collect();
    let mut names = names();
    folders.sort();
    names.sort_unstable();
    assert_eq!(folders, names);
    for name in names {
        assert!(!inputs(name).is_empty(), "{name}");
    }
}

macro_rules! replay {
    ($($target:ident),* $(,)?) => {
        $(#[test]
        fn $target() {
            replay(stringify!($target));
        })*

        #[test]
        fn every_target_is_replayed() {
            assert_eq!(names(), [$(stringify!($target)),*]);
        }
    };
}

replay![
    json,
    protobuf,
    json_patch,
    merge_patch,
    strategic_patch,
    label_selector,
    field_selector,
    quantity,
    time,
    envelope,
    traceparent,
    continue_token,
    query,
    headers,
    body,
    object,
    grpc,
    sequence,
    lost_answers,
    limits,
];
