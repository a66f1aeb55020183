//! What a user sets off is one trace: through real processes, into a real collector, read by Jaeger's query API.

mod limits;
mod picture;
mod story;
mod watched;

use setpoint_tests::Size;

use watched::Watched;

/// One cluster for the whole story, since starting one is what takes long.
#[test]
fn what_a_user_sets_off_is_one_trace_that_explains_its_time() {
    let watched = Watched::start(Size {
        replicas: 1,
        process_nodes: 2,
        simulated_nodes: 0,
        ..Size::default()
    });
    story::an_apply(&watched);
    story::a_scale(&watched);
    story::a_rollout(&watched);
    story::a_deleted_pod(&watched);
    story::nothing_else_was_drawn(&watched);
}

/// A successor continues the trace of what it finishes, and a process that stops exports all its spans.
#[test]
fn a_cascade_through_stops_and_kills_stays_one_trace() {
    let mut watched = Watched::start(Size {
        replicas: 2,
        process_nodes: 0,
        simulated_nodes: 3,
        ..Size::default()
    });
    story::an_apply(&watched);
    story::a_stopped_leader(&mut watched);
    story::a_killed_leader(&mut watched);
    story::a_restarted_gateway(&mut watched);
}
