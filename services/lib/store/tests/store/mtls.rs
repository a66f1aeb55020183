//! The adapter to an etcd that answers only clients with a certificate.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use setpoint_model::Revision;
use setpoint_store::etcd::{self, Etcd};
use setpoint_store::{Entry, Error, Store, Write};
use setpoint_testkit::Certificates;
use setpoint_tls::authority::{Authority, Issued, Leaf, Usage, write_certificates};
use setpoint_tls::{Credentials, Files};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

fn issue(authority: &Authority, name: &str) -> Issued {
    let leaf = Leaf {
        name: name.to_owned(),
        groups: Vec::new(),
        hosts: vec!["127.0.0.1".to_owned()],
        usage: Usage::ServerAndClient,
        lifetime: Duration::from_secs(3_600),
    };
    authority.issue(&leaf).unwrap()
}

fn write(directory: &Path, issued: &Issued) -> Files {
    let files = Files::in_directory(directory);
    write_certificates(&files.ca_file, &[&issued.ca]).unwrap();
    issued.write(&files).unwrap();
    files
}

/// Starts an etcd with a certificate in a directory.
async fn start(authority: &Authority, directory: &Path) -> setpoint_testkit::Etcd {
    let files = write(directory, &issue(authority, "etcd"));
    let certificates = Certificates {
        ca: files.ca_file,
        certificate: files.certificate_file,
        key: files.key_file,
    };
    setpoint_testkit::Etcd::start_with(certificates).await
}

async fn connect(urls: Vec<String>, credentials: Credentials) -> Etcd {
    let settings = etcd::Settings {
        endpoints: urls,
        timeout: Duration::from_secs(2),
        credentials: Some(credentials),
        ..etcd::Settings::default()
    };
    Etcd::connect(&settings).await.unwrap()
}

fn create(name: &str) -> Write {
    Write::create(format!("/registry/tests/{name}"), Bytes::from_static(b"1"))
}

async fn get(store: &Etcd, name: &str) -> Result<Option<Entry>, Error> {
    store.get(&format!("/registry/tests/{name}")).await
}

/// Checks V20.
#[tokio::test]
async fn etcd_answers_those_with_a_certificate_of_its_ca_only() {
    let (authority, other) = (
        Authority::create("etcd-ca").unwrap(),
        Authority::create("x").unwrap(),
    );
    let directory = tempfile::tempdir().unwrap();
    let process = start(&authority, directory.path()).await;
    let known = issue(&authority, "gateway").credentials().unwrap();
    let store = connect(vec![process.url()], known).await;
    store.commit(create("a")).await.unwrap();
    assert!(get(&store, "a").await.unwrap().is_some());

    let foreign = issue(&other, "gateway");
    let foreign =
        Credentials::from_pem(authority.certificate(), &foreign.certificate, &foreign.key);
    let refused = get(&connect(vec![process.url()], foreign.unwrap()).await, "a").await;
    assert!(
        matches!(refused, Err(Error::Unavailable(_) | Error::Timeout)),
        "{refused:?}"
    );
    // Nor does this side trust an etcd of another CA.
    let distrusting = issue(&other, "gateway").credentials().unwrap();
    let refused = get(&connect(vec![process.url()], distrusting).await, "a").await;
    let Err(Error::Unavailable(reason)) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("UnknownIssuer"), "{reason}");
}

#[tokio::test]
async fn a_renewed_certificate_is_used_after_a_restart_and_a_watch_goes_on_until_then() {
    let authority = Authority::create("etcd-ca").unwrap();
    let (own, client) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut process = start(&authority, own.path()).await;
    let files = write(client.path(), &issue(&authority, "gateway"));
    let credentials = Credentials::load(&files).unwrap();
    let store = connect(vec![process.url()], credentials.clone()).await;
    let mut changes = store.watch(store.revision().await.unwrap_or(Revision::from_raw(0)));

    issue(&authority, "gateway").write(&files).unwrap();
    credentials.reload().unwrap();
    store.commit(create("a")).await.unwrap();
    timeout(SOON, changes.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();

    // A new CA, of which etcd has both sides, as after a change of the CA.
    let new = Authority::create("etcd-ca").unwrap();
    write(own.path(), &issue(&new, "etcd"));
    write(client.path(), &issue(&new, "gateway"));
    credentials.reload().unwrap();
    process.kill();
    process.restart().await;
    let again = async { while get(&store, "a").await.is_err() {} };
    timeout(SOON, again).await.unwrap();
    store.commit(create("b")).await.unwrap();
}

#[tokio::test]
async fn calls_go_to_the_member_that_is_there() {
    let authority = Authority::create("etcd-ca").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let process = start(&authority, directory.path()).await;
    let credentials = issue(&authority, "gateway").credentials().unwrap();
    let gone = format!("https://127.0.0.1:{}", setpoint_testkit::free_port());
    let store = connect(vec![gone, process.url()], credentials).await;
    for name in ["a", "b", "c", "d"] {
        store.commit(create(name)).await.unwrap();
        assert!(get(&store, name).await.unwrap().is_some());
    }
}
