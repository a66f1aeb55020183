//! What every store must do. Run it with [`store_contract!`](crate::store_contract).

mod fences;
mod history;
mod writes;

use std::sync::Arc;

use bytes::Bytes;
use setpoint_gateway::store::{Error, Store, Write};
use setpoint_model::Revision;
use setpoint_proto::core::ConfigMap;

use crate::objects::{config_map, enveloped, key_of};

pub use fences::*;
pub use history::*;
pub use writes::*;

/// Every test of this suite on the subject that `$start` (an async expression) makes for it.
#[macro_export]
macro_rules! store_contract {
    ($start:expr) => {
        $crate::run_cases! { $start, $crate::store_contract:
            a_create_needs_the_key_to_be_absent
            an_update_needs_the_revision_that_it_names
            a_delete_needs_the_revision_that_it_names
            of_many_writers_at_once_one_wins
            a_write_outlives_its_caller
            an_acknowledged_write_is_read_by_everyone
            a_fenced_write_commits_only_while_its_term_stands
            a_term_begins_only_after_the_one_that_stood
            a_term_that_is_forgotten_stands_no_more_and_leaves_nothing
            a_stale_object_is_a_conflict_even_within_the_term
            a_write_commits_only_while_its_witnesses_stand
            pages_of_one_revision_do_not_see_later_writes
            a_list_of_keys_alone_has_the_keys_and_revisions_of_the_whole
            every_revision_arrives_once_and_in_order
            a_watch_goes_on_where_another_ended
            a_watch_begins_at_the_compacted_revision_but_not_before
            a_revision_outside_of_the_history_cannot_be_listed
            an_entry_of_the_past_is_read_as_it_stood_until_it_is_compacted
            a_deletion_tells_its_cause
        }
    };
}

/// A ConfigMap's envelope.
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
