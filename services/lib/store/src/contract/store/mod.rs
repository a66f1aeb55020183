//! The contract of every store. Run it with [`store_contract!`](crate::store_contract).

mod fences;
mod history;
mod outcomes;
mod writes;

use std::sync::Arc;

use crate::{Error, Store, Write};
use bytes::Bytes;
use setpoint_model::Revision;
use setpoint_proto::core::ConfigMap;

use crate::contract::objects::{config_map, enveloped, key_of};

pub use fences::*;
pub use history::*;
pub use outcomes::*;
pub use writes::*;

/// Defines the tests of the suite. Each runs on a new subject from `$start`, an async expression.
#[macro_export]
macro_rules! store_contract {
    ($start:expr) => {
        $crate::run_cases! { $start, $crate::contract::store:
            a_create_commits_only_if_the_key_is_absent
            an_update_commits_only_at_the_revision_that_it_names
            a_delete_commits_only_at_the_revision_that_it_names
            one_of_many_concurrent_updates_commits
            a_write_is_committed_even_if_its_caller_is_dropped
            an_acknowledged_write_is_visible_to_every_reader
            a_fenced_write_commits_only_during_its_term
            a_term_begins_only_if_the_current_term_is_as_expected
            a_removed_term_leaves_no_key_and_fences_its_writes
            a_fenced_write_of_a_stale_object_is_a_conflict
            a_value_written_with_a_precondition_is_in_the_same_batch
            a_write_commits_only_while_its_preconditions_hold
            pages_of_one_revision_do_not_see_later_writes
            a_list_of_keys_has_the_keys_and_revisions_of_a_full_list
            every_revision_arrives_once_and_in_order
            a_watch_resumes_after_any_revision
            a_watch_from_before_the_compacted_revision_expires
            a_list_at_a_revision_outside_of_the_history_expires
            an_entry_is_readable_at_old_revisions_until_they_are_compacted
            a_watch_reports_the_cause_of_a_deletion
            a_lost_create_is_found_after_any_further_changes
            a_lost_update_is_found_after_any_further_changes
            a_lost_deletion_is_found_after_the_object_was_created_again
            a_lost_write_is_a_conflict_if_another_changed_the_key_first
            a_lost_write_of_an_unchanged_key_has_an_unknown_outcome
            a_lost_write_has_an_unknown_outcome_once_its_history_is_compacted
            a_commit_that_is_sent_twice_is_made_once
            the_changes_of_one_key_arrive_in_order
        }
    };
}

/// Returns the envelope of a ConfigMap.
fn value(text: &str) -> Bytes {
    enveloped(&config_map("any", text), None)
}

fn key(name: &str) -> String {
    key_of::<ConfigMap>(name)
}

async fn create(store: &Arc<dyn Store>, name: &str, text: &str) -> Result<Revision, Error> {
    store.commit(Write::create(key(name), value(text))).await
}

async fn update(
    store: &Arc<dyn Store>,
    name: &str,
    at: Revision,
    text: &str,
) -> Result<Revision, Error> {
    store
        .commit(Write::update(key(name), at, value(text)))
        .await
}

async fn delete(store: &Arc<dyn Store>, name: &str, at: Revision) -> Result<Revision, Error> {
    store.commit(Write::delete(key(name), at)).await
}
