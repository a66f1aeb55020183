//! The contract of [`Runtime`](crate::Runtime), as suites of tests for every implementation.
//!
//! Run them with [`runtime_contract!`](crate::runtime_contract) and, if it runs programs,
//! [`program_contract!`](crate::program_contract).

#![allow(clippy::unwrap_used, reason = "tests may panic")]
#![allow(missing_docs, reason = "the name of a case is its sentence")]

pub mod containers;
mod fixture;
pub mod programs;
pub mod volumes;

pub use fixture::{
    ALL_OUTPUT, Fixture, IMAGE, Machine, POLL_INTERVAL, TIMEOUT, Woken, container, id, pod,
    resources, sandbox, sandbox_with, uid,
};

/// Defines tests of a suite. Each runs on a new fixture from `$start`, an async expression; it is skipped if that is
/// `None`.
#[macro_export]
macro_rules! run_cases {
    ($start:expr, $suite:path: $($case:ident)*) => {$(
        #[tokio::test]
        async fn $case() {
            use $suite as suite;
            if let Some(fixture) = $start.await {
                suite::$case(fixture).await;
            }
        }
    )*};
}

/// Defines the tests of what every runtime does.
#[macro_export]
macro_rules! runtime_contract {
    ($start:expr) => {
        $crate::run_cases! { $start, $crate::contract::containers:
            a_container_that_does_not_run_runs_no_commands
            a_container_without_a_command_runs_until_it_is_stopped
            the_exit_code_is_that_of_the_command
            an_exit_wakes_the_agent
            a_container_that_runs_is_given_other_resources_and_one_that_has_ended_is_not
            starting_the_same_attempt_again_starts_nothing
            stopping_an_exited_container_changes_nothing
            a_running_container_cannot_be_removed
            a_removed_sandbox_leaves_nothing
            a_container_needs_its_sandbox
            attempts_are_kept_apart
        }
    };
}

/// Defines the tests of what every runtime does that runs programs.
#[macro_export]
macro_rules! program_contract {
    ($start:expr) => {
        $crate::run_cases! { $start, $crate::contract::programs:
            a_command_has_the_surroundings_of_its_container
            a_command_reads_its_input_to_the_end
            a_command_has_a_terminal_if_it_asks_for_one
            a_command_that_does_not_exist_says_so
            a_command_ends_when_its_client_leaves
            a_command_ends_with_its_container
            a_client_that_attaches_reads_what_is_written_from_now_on
            a_connection_reaches_a_port_of_the_pod_and_is_closed_by_halves
            a_port_without_a_listener_refuses
            a_container_that_has_failed_leaves_the_end_of_its_log_as_its_message
            a_log_is_kept_after_the_end_and_read_from_its_tail
            a_log_that_is_followed_ends_with_its_container
        }
        $crate::run_cases! { $start, $crate::contract::volumes:
            volumes_are_filled_and_shared_and_written_only_where_they_may_be
            a_part_of_a_volume_is_made_and_mounted_and_never_leads_out_of_it
            the_files_of_a_volume_change_at_once_while_a_container_reads_them
            a_volume_of_the_machine_outlives_its_pod
            a_link_in_a_path_of_the_machine_gives_no_other
            the_group_of_a_volume_may_read_and_write_it
            a_file_of_a_volume_is_read_by_the_agent
            a_container_works_in_a_volume
            the_space_that_a_pod_holds_is_measured
        }
    };
}
