//! The contract of [`Runtime`](setpoint_runtime::Runtime), on every implementation.

mod process {
    use setpoint_runtime::{program_contract, runtime_contract};

    use crate::process::fixture::process;

    runtime_contract! { async { Some(process()) } }
    program_contract! { async { Some(process()) } }
}

mod docker {
    use setpoint_runtime::{program_contract, runtime_contract};

    use crate::docker::fixture::fixture;

    runtime_contract! { fixture() }
    program_contract! { fixture() }
}

mod cri {
    use setpoint_runtime::{program_contract, runtime_contract};

    use crate::cri::fixture::fixture;

    runtime_contract! { fixture() }
    program_contract! { fixture() }
}

mod simulated {
    use setpoint_runtime::runtime_contract;

    use crate::simulated::simulated;

    runtime_contract! { async { Some(simulated()) } }
}

/// Checks DG1: as `docker`, with answers of the engine that are lost, late, or those to a second request.
macro_rules! whatever_becomes_of_answers {
    ($($name:ident: $fault:expr)*) => {$(
        mod $name {
            use setpoint_runtime::run_cases;

            use crate::docker::answers::{Fault, fixture_with};

            run_cases! { fixture_with($fault), setpoint_runtime::contract::containers:
                the_exit_code_is_that_of_the_command
                a_container_that_runs_is_given_other_resources_and_one_that_has_ended_is_not
            }
            run_cases! { fixture_with($fault), setpoint_runtime::contract::volumes:
                volumes_are_filled_and_shared_and_written_only_where_they_may_be
            }
            run_cases! { fixture_with($fault), crate::docker::answers:
                a_pod_exists_once_and_leaves_nothing
            }
        }
    )*};
}
whatever_becomes_of_answers! {
    docker_with_lost_answers: Fault::Lost
    docker_with_late_answers: Fault::Late
    docker_with_doubled_answers: Fault::Doubled
}
