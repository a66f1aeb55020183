//! The contract of the cache over any store. Run it with [`cache_contract!`](crate::cache_contract).

mod fixture;
mod history;
mod reads;
mod replicas;
mod selection;
mod watches;

pub use history::*;
pub use reads::*;
pub use replicas::*;
pub use selection::*;
pub use watches::*;

/// Defines the tests of the suite. Each runs on a new subject from `$start`, an async expression.
#[macro_export]
macro_rules! cache_contract {
    ($start:expr) => {
        $crate::run_cases! { $start, $crate::contract::cache:
            a_consistent_read_sees_every_acknowledged_write
            consistent_reads_of_a_lagging_replica_are_answered_by_the_store
            a_read_of_any_revision_does_not_wait_for_the_store
            a_list_at_a_future_revision_times_out
            a_page_at_an_old_revision_is_read_from_the_store
            the_version_before_a_revision_is_found_until_it_is_compacted
            the_tombstone_of_an_object_is_found_in_the_log_or_in_the_store
            a_watch_sends_the_initial_state_before_changes
            every_watcher_gets_every_change_once_and_in_order
            a_watch_resumes_from_any_revision
            a_watch_that_ends_within_a_revision_misses_none_of_its_changes
            a_bookmark_never_runs_ahead_of_a_change
            every_watcher_gets_a_bookmark_at_once_when_a_lease_changes_hands
            a_watcher_behind_the_log_expires_and_the_others_continue
            a_watch_expires_if_its_client_stalls
            a_watcher_without_changes_does_not_expire
            a_deletion_carries_its_own_revision_and_cause
            watches_of_a_closed_cache_end_as_unavailable
            a_watch_resumes_on_another_replica
            a_watch_resumes_on_a_replica_that_started_later
            a_cache_that_missed_many_revisions_expires_its_watchers
            a_cache_whose_store_was_compacted_expires_its_watchers
            an_object_that_enters_or_leaves_a_selector_is_added_or_deleted
            a_watch_by_node_gets_the_pods_of_that_node_only
            pods_without_a_node_can_be_watched_by_field_selector
            an_unreadable_value_expires_watchers_and_is_an_error_to_readers
            a_page_doubles_its_reads_until_it_is_full_and_never_exceeds_its_limit
            a_pod_that_changes_its_node_moves_between_the_watches_by_node
            a_selector_on_an_unsupported_field_is_a_bad_request
        }
    };
}
