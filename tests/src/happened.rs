//! What has happened to ConfigMaps, as etcd itself tells it: the measure of what watchers are told.

use etcd_client::{Client, WatchOptions};
use setpoint_model::Revision;

/// Many changes come in one message.
const MESSAGE_MAX: usize = 256 << 20;

/// The revisions after the first and up to the last at which something happened to a ConfigMap.
///
/// # Panics
/// When etcd does not tell.
pub async fn happened(etcd: &str, after: Revision, until: Revision) -> Vec<u64> {
    let client = Client::connect([etcd], None).await.expect("etcd is up");
    let mut client = client.watch_client().max_decoding_message_size(MESSAGE_MAX);
    let start = i64::try_from(after.raw() + 1).expect("revisions are small");
    let options = WatchOptions::new().with_prefix().with_start_revision(start);
    let watch = client.watch("/registry/configmaps/", Some(options)).await;
    let mut watch = watch.expect("etcd can be watched");
    let mut revisions = Vec::new();
    while revisions.last().is_none_or(|last| *last < until.raw()) {
        let message = watch.message().await.expect("the watch goes on");
        let message = message.expect("the watch has no end");
        assert!(!message.canceled(), "etcd has kept its history");
        let kvs = message.events().iter().filter_map(|event| event.kv());
        revisions.extend(kvs.map(|kv| u64::try_from(kv.mod_revision()).expect("never below 0")));
    }
    revisions
}
