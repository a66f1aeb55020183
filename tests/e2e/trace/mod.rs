//! A user's write and all its effects are one trace, read from Jaeger's query API.

mod limits;
mod picture;
mod scenario;
mod watched;
mod workloads;

use setpoint_tests::Size;

use watched::Watched;

/// One test, because starting a cluster takes most of the time.
#[test]
fn each_write_of_a_user_and_its_effects_are_one_trace_without_gaps() {
    let watched = Watched::start(Size {
        replicas: 1,
        process_nodes: 2,
        simulated_nodes: 0,
        ..Size::default()
    });
    scenario::an_apply(&watched);
    scenario::a_scale(&watched);
    scenario::a_rollout(&watched);
    scenario::a_deleted_pod(&watched);
    scenario::no_other_traces(&watched);
}

/// A successor continues the trace of the cascade, and a process that stops exports all its spans.
#[test]
fn a_cascade_across_stopped_and_killed_processes_is_one_trace() {
    let mut watched = Watched::start(Size {
        replicas: 2,
        process_nodes: 0,
        simulated_nodes: 3,
        ..Size::default()
    });
    scenario::an_apply(&watched);
    scenario::a_stopped_leader(&mut watched);
    scenario::a_killed_leader(&mut watched);
    scenario::a_restarted_gateway(&mut watched);
}
