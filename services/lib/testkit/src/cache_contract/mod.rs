//! What the cache must do over every store. Run it with [`cache_contract!`](crate::cache_contract).

mod past;
mod reads;
mod replicas;
mod selection;
mod watches;
mod world;

pub use past::*;
pub use reads::*;
pub use replicas::*;
pub use selection::*;
pub use watches::*;

/// Every test of this suite on the subject that `$start` (an async expression) makes for it.
#[macro_export]
macro_rules! cache_contract {
    ($start:expr) => {
        $crate::run_cases! { $start, $crate::cache_contract:
            a_consistent_read_sees_every_acknowledged_write
            a_lagging_replica_does_not_show_what_was_deleted
            any_state_will_do_for_who_says_so
            a_revision_that_never_was_cannot_be_read
            a_page_of_the_past_is_read_from_the_store
            each_version_of_an_object_leads_to_the_one_before_it
            the_end_of_an_object_is_known_from_the_log_or_found_in_the_store
            the_state_comes_first_and_then_every_change
            every_watcher_gets_every_change_once_and_in_order
            a_watch_resumes_from_any_revision
            a_bookmark_never_runs_ahead_of_a_change
            every_watcher_hears_at_once_how_far_it_is_when_a_leader_was_elected
            a_slow_watcher_expires_and_the_others_go_on
            a_watcher_whose_client_takes_nothing_is_ended
            silence_does_not_expire_a_watcher
            a_deletion_carries_its_own_revision_and_cause
            a_closed_cache_ends_its_watches
            a_watch_resumes_on_another_replica
            a_watch_resumes_on_a_replica_that_started_later
            a_cache_that_was_left_far_behind_starts_its_watchers_again
            a_cache_whose_store_was_compacted_starts_its_watchers_again
            an_object_enters_and_leaves_a_selector
            a_node_is_told_of_its_own_pods_alone
            pods_without_a_node_are_watched_like_any_others
            a_value_that_cannot_be_read_takes_the_old_object_away
            a_page_reads_no_more_than_it_must_and_never_exceeds_its_limit
            a_pod_that_moves_leaves_one_node_and_enters_the_other
            a_field_that_cannot_be_selected_by_is_named
        }
    };
}
