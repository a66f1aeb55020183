//! Tests of handshakes.

use std::time::{Duration, SystemTime};
use std::{fs, path::Path};

use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::authority::{Authority, Issued, Leaf, Present, Usage, write_certificates};
use crate::{Credentials, Error, Files, PeerIdentity, ServingFiles, SigningRequest, Validity};

fn leaf(name: &str) -> Leaf {
    Leaf {
        name: name.to_owned(),
        groups: vec!["system:setpoint".to_owned(), "second".to_owned()],
        hosts: vec!["gateway.test".to_owned(), "127.0.0.1".to_owned()],
        usage: Usage::ServerAndClient,
        lifetime: Duration::from_secs(3_600),
    }
}

fn authority() -> Authority {
    Authority::create("test-ca").unwrap()
}

fn credentials(authority: &Authority, name: &str) -> Credentials {
    authority.issue(&leaf(name)).unwrap().credentials().unwrap()
}

/// Writes all files of an identity.
fn write(directory: &Path, issued: &Issued) -> Files {
    let files = Files::in_directory(directory);
    write_certificates(&files.ca_file, &[&issued.ca]).unwrap();
    issued.write(&files).unwrap();
    files
}

/// The certificates that the two ends of a handshake present: the client's, as the server sees it, and the server's.
type Presented = (Vec<CertificateDer<'static>>, Vec<CertificateDer<'static>>);

/// Connects a client to a server by a name.
async fn handshake(
    client: &Credentials,
    server: &Credentials,
    name: &str,
) -> Result<Presented, String> {
    let (near, far) = duplex(64 << 10);
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connector = TlsConnector::from(client.client());
    let acceptor = TlsAcceptor::from(server.server());
    let (connected, accepted) = tokio::join!(connector.connect(name, near), acceptor.accept(far));
    let (mut connected, mut accepted) = (
        connected.map_err(|error| error.to_string())?,
        accepted.map_err(|error| error.to_string())?,
    );
    connected.write_all(b"ping").await.unwrap();
    connected.flush().await.unwrap();
    let mut read = [0; 4];
    accepted.read_exact(&mut read).await.unwrap();
    let owned = |chain: Option<&[CertificateDer<'static>]>| chain.unwrap_or_default().to_vec();
    Ok((
        owned(accepted.get_ref().1.peer_certificates()),
        owned(connected.get_ref().1.peer_certificates()),
    ))
}

/// Returns the name of the server that a handshake shows.
async fn server_name(client: &Credentials, server: &Credentials) -> Result<String, String> {
    let (_, presented) = handshake(client, server, "127.0.0.1").await?;
    Ok(PeerIdentity::parse(&presented[0]).unwrap().unwrap().name)
}

#[tokio::test]
async fn both_ends_of_a_connection_know_each_other() {
    let authority = authority();
    let (client, server) = (
        credentials(&authority, "client"),
        credentials(&authority, "server"),
    );
    for name in ["127.0.0.1", "gateway.test"] {
        let (client_chain, server_chain) = handshake(&client, &server, name).await.unwrap();
        let identity = server.identify(&client_chain).unwrap().unwrap();
        assert_eq!(identity.name, "client");
        assert_eq!(identity.groups, ["system:setpoint", "second"]);
        assert_eq!(identity.uid, "");
        assert_eq!(identity.fingerprint.len(), 64);
        assert_eq!(identity.not_after, client.expiry());
        assert_eq!(
            client.identify(&server_chain).unwrap().unwrap().name,
            "server"
        );
    }
    let error = handshake(&client, &server, "other.test").await.unwrap_err();
    assert!(error.contains("not valid for name"), "{error}");
    assert_eq!(server.identify(&[]), Ok(None));
}

/// Checks V20.
#[tokio::test]
async fn certificates_of_another_ca_are_not_accepted() {
    let (own, other) = (authority(), Authority::create("other-ca").unwrap());
    let server = credentials(&own, "server");
    let error = handshake(&credentials(&other, "client"), &server, "127.0.0.1").await;
    assert!(error.unwrap_err().contains("UnknownIssuer"));
    // Its key is proven, but not by whom it was issued.
    let foreign = other.issue(&leaf("client")).unwrap();
    let foreign = Credentials::from_pem(own.certificate(), &foreign.certificate, &foreign.key);
    let (chain, _) = handshake(&foreign.unwrap(), &server, "127.0.0.1")
        .await
        .unwrap();
    let error = server.identify(&chain).unwrap_err();
    assert!(error.contains("UnknownIssuer"), "{error}");
}

#[tokio::test]
async fn certificates_that_have_expired_or_are_for_servers_identify_no_client() {
    let authority = authority();
    let server = credentials(&authority, "server");
    let now = Timestamp::now();
    let past = Validity {
        not_before: now - SignedDuration::from_mins(20),
        not_after: now - SignedDuration::from_secs(1),
    };
    let expired = authority.issue_for(&leaf("client"), past).unwrap();
    let for_servers = Leaf {
        usage: Usage::Server,
        ..leaf("client")
    };
    let for_servers = authority.issue(&for_servers).unwrap();
    for (issued, reason) in [(expired, "expired"), (for_servers, "client authentication")] {
        let client = issued.credentials().unwrap();
        let (chain, _) = handshake(&client, &server, "127.0.0.1").await.unwrap();
        let error = server.identify(&chain).unwrap_err();
        assert!(error.to_lowercase().contains(reason), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn renewed_files_are_used_by_the_next_handshake() {
    let (authority, directory) = (authority(), tempfile::tempdir().unwrap());
    let files = write(directory.path(), &authority.issue(&leaf("first")).unwrap());
    let (server, client) = (
        Credentials::load(&files).unwrap(),
        credentials(&authority, "client"),
    );
    let following = tokio::spawn(server.clone().follow());
    assert_eq!(server_name(&client, &server).await.unwrap(), "first");

    authority
        .issue(&leaf("second"))
        .unwrap()
        .write(&files)
        .unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(server_name(&client, &server).await.unwrap(), "second");
    following.abort();
}

#[tokio::test(start_paused = true)]
async fn a_pair_that_is_half_written_changes_nothing_until_it_is_whole() {
    let (authority, directory) = (authority(), tempfile::tempdir().unwrap());
    let files = write(directory.path(), &authority.issue(&leaf("first")).unwrap());
    let (server, client) = (
        Credentials::load(&files).unwrap(),
        credentials(&authority, "client"),
    );
    let following = tokio::spawn(server.clone().follow());

    let second = authority.issue(&leaf("second")).unwrap();
    fs::write(&files.key_file, &second.key).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(server_name(&client, &server).await.unwrap(), "first");
    fs::write(&files.certificate_file, &second.certificate[..100]).unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(server_name(&client, &server).await.unwrap(), "first");
    fs::write(&files.certificate_file, &second.certificate).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(server_name(&client, &server).await.unwrap(), "second");
    following.abort();
}

#[tokio::test(start_paused = true)]
async fn a_bundle_trusts_both_cas_during_a_change() {
    let (old, new, directory) = (authority(), authority(), tempfile::tempdir().unwrap());
    let files = write(directory.path(), &old.issue(&leaf("client")).unwrap());
    let client = Credentials::load(&files).unwrap();
    let following = tokio::spawn(client.clone().follow());
    let (before, after) = (credentials(&old, "before"), credentials(&new, "after"));
    assert_eq!(server_name(&client, &before).await.unwrap(), "before");
    assert!(server_name(&client, &after).await.is_err());

    write_certificates(&files.ca_file, &[old.certificate(), new.certificate()]).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(server_name(&client, &before).await.unwrap(), "before");
    assert_eq!(server_name(&client, &after).await.unwrap(), "after");

    write_certificates(&files.ca_file, &[new.certificate()]).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(server_name(&client, &before).await.is_err());
    assert_eq!(server_name(&client, &after).await.unwrap(), "after");
    following.abort();
}

#[test]
fn errors_name_the_file() {
    let (authority, directory) = (authority(), tempfile::tempdir().unwrap());
    let files = write(directory.path(), &authority.issue(&leaf("a")).unwrap());
    let error = |files: &Files| Credentials::load(files).unwrap_err().to_string();
    let missing = Files {
        key_file: directory.path().join("none"),
        ..files.clone()
    };
    assert!(error(&missing).ends_with("/none"), "{}", error(&missing));
    let swapped = Files {
        key_file: files.ca_file.clone(),
        ..files.clone()
    };
    assert!(error(&swapped).ends_with("ca.crt has no private key in PEM"));
    let partial = Files {
        ca_file: Default::default(),
        ..files.clone()
    };
    assert!(error(&partial).ends_with("ca_file is missing"));
    let other = authority.issue(&leaf("b")).unwrap();
    fs::write(&files.key_file, other.key).unwrap();
    let mismatch = error(&files);
    assert!(
        mismatch.contains("tls.key does not have the key"),
        "{mismatch}"
    );
    assert!(Files::default().validate().is_ok());
}

#[test]
fn an_authority_is_made_once_and_its_key_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let (certificate, key) = (
        directory.path().join("ca.crt"),
        directory.path().join("ca.key"),
    );
    let load = || Authority::load_or_create("ca", &certificate, &key).unwrap();
    assert_eq!(load().certificate(), load().certificate());
    assert_eq!(
        fs::metadata(&key).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let years = load().validity().remaining(Timestamp::now()).as_hours() / 24 / 365;
    assert_eq!(years, 10);
    fs::write(&key, authority().key()).unwrap();
    assert!(matches!(
        Authority::load(&certificate, &key),
        Err(Error::Mismatch { .. })
    ));
    fs::remove_file(&certificate).unwrap();
    assert!(Authority::load_or_create("ca", &certificate, &key).is_err());
}

#[test]
fn leaves_do_not_outlive_their_authority_and_expire_visibly() {
    let authority = authority();
    let forever = Leaf {
        lifetime: Duration::from_secs(20 * 365 * 86_400),
        ..leaf("a")
    };
    let issued = authority.issue(&forever).unwrap();
    assert_eq!(issued.validity.not_after, authority.validity().not_after);
    assert!(issued.validity.not_before <= Timestamp::try_from(SystemTime::now()).unwrap());
    let day = Leaf {
        lifetime: Duration::from_secs(86_400),
        ..leaf("a")
    };
    let validity = authority
        .issue(&day)
        .unwrap()
        .credentials()
        .unwrap()
        .validity();
    let after = |hours| Timestamp::now() + SignedDuration::from_hours(hours);
    assert!(!validity.is_expiring(after(17)));
    assert!(validity.is_expiring(after(18)));
    assert!(
        authority
            .issue(&Leaf {
                hosts: vec!["no name".to_owned()],
                ..leaf("a")
            })
            .is_err()
    );
}

/// Without a serving certificate nobody gets a connection, whatever the process connects with.
#[tokio::test]
async fn a_process_with_another_certificate_for_clients_serves_once_it_has_that() {
    let directory = tempfile::tempdir().unwrap();
    let authority = authority();
    let own = authority.issue(&leaf("client")).unwrap();
    let files = write(directory.path(), &own);
    let serving = ServingFiles {
        certificate_file: directory.path().join("serving.crt"),
        key_file: directory.path().join("serving.key"),
    };
    let agent = Credentials::load_with_serving(&files, &serving).unwrap();
    let client = credentials(&authority, "other");
    assert!(handshake(&client, &agent, "gateway.test").await.is_err());
    assert_eq!(agent.serving_validity(), None);
    let issued = authority.issue(&leaf("server")).unwrap();
    let target = Files {
        ca_file: files.ca_file.clone(),
        certificate_file: serving.certificate_file.clone(),
        key_file: serving.key_file.clone(),
    };
    issued.write(&target).unwrap();
    agent.reload().unwrap();
    let (_, shown) = handshake(&client, &agent, "gateway.test").await.unwrap();
    let shown = PeerIdentity::parse(&shown[0]).unwrap().unwrap();
    assert_eq!(shown.name, "server");
    let seconds = |validity: Validity| validity.not_after.as_second();
    let shown = agent.serving_validity().map(seconds);
    assert_eq!(shown, Some(seconds(issued.validity)));
    let (presented, _) = handshake(&agent, &client, "gateway.test").await.unwrap();
    assert_eq!(client.identify(&presented).unwrap().unwrap().name, "client");
    let mut hosts = Present::read(&serving.certificate_file).unwrap().leaf.hosts;
    hosts.sort();
    assert_eq!(hosts, ["127.0.0.1", "gateway.test"]);
    // A certificate without its key changes nothing.
    std::fs::write(&serving.key_file, &own.key).unwrap();
    assert!(agent.reload().is_err());
    assert!(handshake(&client, &agent, "gateway.test").await.is_ok());
}

#[test]
fn a_request_has_the_names_that_it_is_made_for() {
    let hosts = ["127.0.0.1".to_owned(), "a.example.com".to_owned()];
    let request = SigningRequest::create("system:node:a", "system:nodes", &hosts).unwrap();
    let again = SigningRequest::of_key(&request.key(), "system:node:a", "system:nodes").unwrap();
    assert_eq!(request.key_digest(), again.key_digest());
    assert!(
        request
            .pem()
            .starts_with("-----BEGIN CERTIFICATE REQUEST-----")
    );
    let unnamed = ["no name \u{e9}".to_owned()];
    assert!(SigningRequest::create("a", "b", &unnamed).is_err());
}
