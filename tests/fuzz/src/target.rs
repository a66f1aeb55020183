//! The table of targets.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use crate::{
    body, continue_token, envelope, field_selector, grpc, headers, json, label_selector, limits,
    object, patch, protobuf, quantity, query, sequence, time, traceparent,
};

/// The maximum CPU time of one input of up to 64 KiB. Code that takes longer is not linear.
const BOUND: Duration = Duration::from_secs(1);

/// A function of bytes that panics on a defect.
#[derive(Debug)]
pub struct Target {
    /// The name, as in `inputs/<name>`.
    pub name: &'static str,
    run: fn(&[u8]),
}

const TARGETS: &[Target] = &[
    new("json", json::run),
    new("protobuf", protobuf::run),
    new("json_patch", patch::json),
    new("merge_patch", patch::merge),
    new("strategic_patch", patch::strategic),
    new("label_selector", label_selector::run),
    new("field_selector", field_selector::run),
    new("quantity", quantity::run),
    new("time", time::run),
    new("envelope", envelope::run),
    new("traceparent", traceparent::run),
    new("continue_token", continue_token::run),
    new("query", query::run),
    new("headers", headers::run),
    new("body", body::run),
    new("object", object::run),
    new("grpc", grpc::run),
    new("sequence", sequence::run),
    new("lost_answers", sequence::with_lost_answers),
    new("limits", limits::run),
];

const fn new(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// Returns the target with this name.
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}

/// Returns the names of all targets.
pub fn names() -> Vec<&'static str> {
    TARGETS.iter().map(|target| target.name).collect()
}

impl Target {
    /// Runs the target on one input.
    ///
    /// # Panics
    /// If the input shows a defect.
    pub fn run(&self, input: &[u8]) {
        (self.run)(input);
    }

    /// As [`run`](Self::run); an input that takes more than a second of CPU time is a defect, too.
    ///
    /// # Panics
    /// If the input shows a defect.
    pub fn run_bounded(&self, input: &[u8]) {
        let start = cpu_time();
        self.run(input);
        let taken = cpu_time().saturating_sub(start);
        assert!(taken < BOUND, "{} took {taken:?} of CPU time", self.name);
    }
}

/// Returns the CPU time of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    time.expect("the clock exists on Linux").into()
}
