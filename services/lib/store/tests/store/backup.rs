//! Backups of a real etcd, and restores into another one.

use std::fs;
use std::path::PathBuf;

use setpoint_model::{Key, Revision};
use setpoint_store::backup::{Error, Options, Restored, Snapshot, restore, save};
use setpoint_store::etcd::{self, Etcd};
use setpoint_store::{Bumped, Range, Store, Term, Write, keys};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// The number of objects, of which every tenth is deleted again.
const OBJECTS: usize = 300;

struct Server {
    _process: setpoint_testkit::Etcd,
    settings: etcd::Settings,
    store: Bumped<Etcd>,
    etcd: Etcd,
}

impl Server {
    async fn start() -> Self {
        let process = setpoint_testkit::Etcd::start().await;
        let settings = etcd::Settings {
            endpoints: vec![process.url()],
            ..Default::default()
        };
        let etcd = Etcd::connect(&settings).await.unwrap();
        let store = Bumped::new(etcd.clone());
        Self {
            _process: process,
            settings,
            store,
            etcd,
        }
    }

    async fn values(&self) -> Vec<(String, String)> {
        let page = self.store.list(Range::all(keys::ROOT)).await.unwrap();
        let values = page.entries.into_iter();
        let text = |value: bytes::Bytes| String::from_utf8(value.to_vec()).unwrap();
        values.map(|entry| (entry.key, text(entry.value))).collect()
    }

    async fn restore(&self, snapshot: &Snapshot) -> Result<Restored, Error> {
        restore(&self.etcd, snapshot, Options::default(), |_| {}).await
    }
}

/// Fills a store: objects that were updated and deleted, a Lease with a term, and a key that signs tokens.
async fn fill(store: &dyn Store) {
    for index in 0..OBJECTS {
        let key = format!("/registry/configmaps/default/c-{index:03}");
        let created = store
            .commit(Write::create(&key, "{}".into()))
            .await
            .unwrap();
        let value = format!("{{\"data\":{{\"n\":\"{index}\"}}}}");
        let updated = Write::update(&key, created, value.into());
        let updated = store.commit(updated).await.unwrap();
        if index % 10 == 0 {
            store.commit(Write::delete(&key, updated)).await.unwrap();
        }
    }
    let term = Term {
        namespace: "kube-system".into(),
        lease: "a".into(),
        from: None,
        to: Some(41),
    };
    let lease = Write::create("/registry/leases/kube-system/a", "{}".into());
    store.commit(lease.advancing(Some(term))).await.unwrap();
    store
        .commit(Write::create(keys::TOKEN_KEYS, "[]".into()))
        .await
        .unwrap();
}

async fn saved(server: &Server, folder: &TempDir) -> (PathBuf, Snapshot) {
    let path = folder.path().join("backup");
    let snapshot = save(&server.settings, &path, |_| {}).await.unwrap();
    (path, snapshot)
}

/// Checks DG21: revisions and terms go on above those of the lost store.
#[tokio::test]
async fn a_restored_store_has_the_values_of_the_backup_at_revisions_and_terms_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (lost, new) = (Server::start().await, Server::start().await);
    fill(&lost.store).await;
    let (_, snapshot) = saved(&lost, &folder).await;
    let contents = snapshot.contents().unwrap();
    assert_eq!(contents.revision, lost.store.revision().await.unwrap());
    assert_eq!(contents.objects["configmaps"], OBJECTS * 9 / 10);
    let values = lost.values().await;
    let after = lost
        .store
        .commit(Write::create("/registry/pods/default/late", "{}".into()));
    let after = after.await.unwrap();

    let restored = new.restore(&snapshot).await.unwrap();
    assert_eq!(
        restored,
        Restored {
            objects: OBJECTS * 9 / 10,
            leases: 1
        }
    );
    let is_lease = |key: &str| key.starts_with("/registry/leases/");
    let values = values.into_iter().filter(|(key, _)| !is_lease(key));
    assert_eq!(new.values().await, values.collect::<Vec<_>>());
    let page = new.store.list(Range::all(keys::ROOT)).await.unwrap();
    assert!(page.entries.iter().all(|entry| entry.revision > after));
    let past = new.store.get(keys::PAST_TERM).await.unwrap().unwrap();
    assert!(Term::read(&past.value).unwrap() > 1_000_000);
    let term = keys::term(&Key::new("kube-system", "a"));
    assert_eq!(new.store.get(&term).await.unwrap(), None);
    assert!(new.store.get(keys::TOKEN_KEYS).await.unwrap().is_some());
    let newest = new.store.revision().await.unwrap();
    for stale in [after, Revision::from_raw(1)] {
        let range = Range {
            at: Some(stale),
            ..Range::all(keys::ROOT)
        };
        let stale = new.store.list(range).await;
        assert_eq!(stale, Err(setpoint_store::Error::Expired));
    }

    // A backup of what was restored can be restored, too.
    let again = folder.path().join("again");
    let again = save(&new.settings, &again, |_| {}).await.unwrap();
    assert_eq!(again.revision().unwrap(), newest);
    let third = Server::start().await;
    third.restore(&again).await.unwrap();
    assert!(third.store.revision().await.unwrap() > newest);
}

#[tokio::test]
async fn the_keys_of_tokens_can_be_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (lost, new) = (Server::start().await, Server::start().await);
    fill(&lost.store).await;
    let (_, snapshot) = saved(&lost, &folder).await;
    let options = Options {
        new_token_keys: true,
    };
    restore(&new.etcd, &snapshot, options, |_| {})
        .await
        .unwrap();
    assert_eq!(new.store.get(keys::TOKEN_KEYS).await.unwrap(), None);
}

#[tokio::test]
async fn a_store_with_objects_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start().await;
    fill(&server.store).await;
    let (_, snapshot) = saved(&server, &folder).await;
    let before = server.store.revision().await.unwrap();
    let refused = server.restore(&snapshot).await.unwrap_err();
    assert!(matches!(refused, Error::NotEmpty(_)), "{refused}");
    assert_eq!(server.store.revision().await.unwrap(), before);
}

#[tokio::test]
async fn nothing_is_served_and_nothing_can_be_restored_of_a_restore_that_was_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let (lost, new) = (Server::start().await, Server::start().await);
    fill(&lost.store).await;
    let (_, snapshot) = saved(&lost, &folder).await;
    let (begun, begins) = tokio::sync::oneshot::channel();
    let mut begun = Some(begun);
    let etcd = new.etcd.clone();
    let restoring = tokio::spawn(async move {
        let progress = |keys| {
            if let Some(begun) = begun.take_if(|_| keys > OBJECTS / 4) {
                begun.send(()).unwrap();
            }
        };
        restore(&etcd, &snapshot, Options::default(), progress).await
    });
    begins.await.unwrap();
    restoring.abort();
    let _ = restoring.await;
    let refused = new.store.list(Range::all(keys::ROOT)).await.unwrap_err();
    let reason = "the store cannot be reached: a restore of a backup has not ended";
    assert_eq!(refused.to_string(), reason);
    let path = folder.path().join("partial");
    let partial = save(&new.settings, &path, |_| {}).await.unwrap();
    assert!(matches!(partial.revision(), Err(Error::Unfinished)));
}

#[tokio::test]
async fn a_file_that_exists_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start().await;
    fill(&server.store).await;
    let (path, _) = saved(&server, &folder).await;
    let before = fs::read(&path).unwrap();
    let refused = save(&server.settings, &path, |_| {}).await.unwrap_err();
    assert!(refused.to_string().ends_with("exists already"), "{refused}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_damaged_file_is_an_error_and_never_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start().await;
    fill(&server.store).await;
    let (path, _) = saved(&server, &folder).await;
    let whole = fs::read(&path).unwrap();
    let size = whole.len() - 32;
    let damaged = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        Snapshot::open(&path)
    };
    for length in [0, 31, 32, 4096, size, whole.len() - 1] {
        assert!(damaged(&whole[..length]).is_err(), "{length} bytes");
    }
    for place in (0..size).step_by(size / 97) {
        let mut content = whole.clone();
        content[place] ^= 0x55;
        assert!(damaged(&content).is_err(), "at {place}");
        // With a digest that matches, the structure decides.
        let digest = Sha256::digest(&content[..size]);
        content[size..].copy_from_slice(&digest);
        let opened = damaged(&content);
        let _ = opened.map(|snapshot| snapshot.contents().is_ok());
    }
    fs::write(&path, &whole).unwrap();
    assert!(Snapshot::open(&path).is_ok());
}
