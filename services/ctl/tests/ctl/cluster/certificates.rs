//! The certificates of a cluster are made, renewed, and given to users.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use jiff::{SignedDuration, Timestamp};
use setpoint_tls::authority::{Authority, Present};
use setpoint_tls::{Files, Validity};

use crate::cluster::harness::{Cluster, eventually, stdout_of};

/// The folders of all certificates of a cluster with one gateway.
const FOLDERS: usize = 15;

/// Returns the files of all certificates.
fn certificates(cluster: &Cluster) -> Vec<Files> {
    let pki = cluster.root.path().join(".setpoint/pki");
    let folders = fs::read_dir(pki)
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let folders = folders.flat_map(|folder| [folder.join("etcd"), folder]);
    let files = folders.map(|folder| Files::in_directory(&folder));
    files
        .filter(|files| files.certificate_file.exists())
        .collect()
}

/// Replaces all certificates by ones that have expired.
fn expire(cluster: &Cluster) {
    let pki = cluster.root.path().join(".setpoint/pki");
    let authority = |name: &str| {
        let [certificate, key] = ["crt", "key"].map(|end| pki.join(format!("{name}.{end}")));
        Authority::load(&certificate, &key).unwrap()
    };
    let authorities = ["ca", "etcd-ca"].map(authority);
    for files in certificates(cluster) {
        let ca = fs::read_to_string(&files.ca_file).unwrap();
        let authority = authorities.iter().find(|one| one.certificate() == ca);
        let leaf = Present::read(&files.certificate_file).unwrap().leaf;
        let authority = authority.unwrap();
        let validity = Validity {
            not_before: authority.validity().not_before,
            not_after: Timestamp::now() - SignedDuration::from_secs(10),
        };
        let issued = authority.issue_for(&leaf, validity);
        issued.unwrap().write(&files).unwrap();
    }
}

fn valid(cluster: &Cluster) -> usize {
    let certificates = certificates(cluster).into_iter();
    let valid = certificates.filter(|files| {
        let present = Present::read(&files.certificate_file);
        present.is_ok_and(|present| present.validity.not_after > Timestamp::now())
    });
    valid.count()
}

fn kubectl(kubeconfig: &Path, arguments: &str) -> Output {
    let mut command = Command::new("kubectl");
    let command = command.env("KUBECONFIG", kubeconfig);
    command.args(arguments.split(' ')).output().unwrap()
}

#[test]
fn a_cluster_that_was_stopped_for_longer_than_its_certificates_live_comes_up() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    stdout_of(&cluster.run(&["down"]));
    assert_eq!(valid(&cluster), FOLDERS);
    expire(&cluster);
    assert_eq!(valid(&cluster), 0);
    cluster.up(&[]);
    assert_eq!(valid(&cluster), FOLDERS);
    assert_eq!(cluster.ask("GET", "/readyz", ""), 200);
}

/// As after the sleep of a machine. Connections end with the processes at the latest; new ones need new certificates.
#[test]
fn a_running_cluster_whose_certificates_have_expired_gets_new_ones_without_a_restart() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    let before = cluster.pids();
    expire(&cluster);
    eventually("all are renewed", || {
        (valid(&cluster) == FOLDERS).then_some(())
    });
    // A gateway that is new to the others: all connect to it with new certificates.
    cluster.kill("gateway-0");
    cluster.up(&[]);
    eventually("all processes are ready", || {
        let status = cluster.run(&["status"]);
        status.status.success().then_some(())
    });
    let mut after = cluster.pids();
    assert_ne!(
        after.insert("gateway-0".to_owned(), 0),
        before.get("gateway-0").copied()
    );
    let others = before.iter().filter(|(name, _)| *name != "gateway-0");
    assert!(others.into_iter().all(|(name, pid)| after[name] == *pid));
}

#[test]
fn up_starts_a_killed_process_of_certificates_and_nothing_else_notices() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    let before = cluster.pids();
    cluster.kill("certs-0");
    assert_eq!(cluster.ask("GET", "/readyz", ""), 200);
    let text = cluster.up(&[]);
    assert!(text.contains("Starting the 1 of 14 processes"), "{text}");
    let after = cluster.pids();
    let others = before.iter().filter(|(name, _)| *name != "certs-0");
    assert!(others.into_iter().all(|(name, pid)| after[name] == *pid));
}

#[test]
fn kubeconfigs_have_certificates_of_their_users() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    let own = cluster.root.path().join(".setpoint/kubeconfig");
    let version = kubectl(&own, "get --raw /version");
    assert!(version.status.success(), "{version:?}");
    let file = cluster.root.path().join("alice");
    let output = file.display().to_string();
    let user = [
        "kubeconfig",
        "--user",
        "alice",
        "--group",
        "dev",
        "--group",
        "ops",
    ];
    stdout_of(&cluster.run(&[&user[..], &["--output", &output]].concat()));
    let version = kubectl(&file, "get --raw /version");
    assert!(version.status.success(), "{version:?}");
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(&own), 0o600);
    let printed = stdout_of(&cluster.run(&user));
    assert!(printed.contains("client-certificate-data: "), "{printed}");
}

fn mode(file: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

/// Checks V20: clients go on during the change, and those with certificates by the old CA end with it.
#[test]
fn the_cas_are_changed_while_everything_runs() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    let own = cluster.root.path().join(".setpoint/kubeconfig");
    let old = cluster.root.path().join("old");
    fs::copy(&own, &old).unwrap();
    let mut watch = Command::new("kubectl")
        .env("KUBECONFIG", &old)
        .args(["get", "configmaps", "--watch", "--no-headers", "-o", "name"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut watched = BufReader::new(watch.stdout.take().unwrap());
    let before = cluster.pids();
    let refused = cluster.run(&["certs", "--remove-old-ca"]);
    assert!(!refused.status.success(), "there is no old CA");

    let mut change = cluster.command(&["certs", "--rotate-ca"]);
    let mut change = change.stdout(Stdio::piped()).spawn().unwrap();
    let mut asked = 0;
    while change.try_wait().unwrap().is_none() {
        // The file of the administrator is written again during the change, that of a user is not.
        let version = kubectl(&old, "get --raw /version");
        assert!(version.status.success(), "{version:?}");
        asked += 1;
    }
    assert!(change.wait().unwrap().success());
    assert!(asked > 0);
    let mut after = cluster.pids();
    assert_ne!(
        after.insert("etcd-0".into(), 0),
        before.get("etcd-0").copied()
    );
    let others = before.iter().filter(|(name, _)| *name != "etcd-0");
    assert!(others.into_iter().all(|(name, pid)| after[name] == *pid));
    for (name, file) in [("by-old", &old), ("by-new", &own)] {
        eventually("objects are written and watched", || {
            kubectl(file, &format!("create configmap {name}"))
                .status
                .success()
                .then_some(())
        });
        let mut line = String::new();
        while line != format!("configmap/{name}\n") {
            line.clear();
            assert!(
                watched.read_line(&mut line).unwrap() > 0,
                "the watch has ended"
            );
        }
    }
    let published = |count: usize| {
        eventually("Pods get the CAs", || {
            let map = "get configmap kube-root-ca.crt -o jsonpath={.data}";
            let text = String::from_utf8(kubectl(&own, map).stdout).unwrap();
            (text.matches("BEGIN CERTIFICATE").count() == count).then_some(())
        });
    };
    published(2);

    stdout_of(&cluster.run(&["certs", "--remove-old-ca"]));
    eventually("the watch of the old client ends", || {
        watch.try_wait().unwrap()
    });
    let refused = kubectl(&old, "get namespaces");
    assert!(!refused.status.success());
    let version = kubectl(&own, "get --raw /version");
    assert!(version.status.success(), "{version:?}");
    published(1);
    assert_eq!(valid(&cluster), FOLDERS);
    let status = stdout_of(&cluster.run(&["status"]));
    let mut last = cluster.pids();
    last.insert("etcd-0".into(), 0);
    assert_eq!(last, after, "{status}");
}

/// Checks DG5: etcd serves only clients with a certificate by its own CA; the administrator's is by another.
#[test]
fn etcd_serves_gateways_alone() {
    let cluster = Cluster::new();
    cluster.up(&[]);
    let pki = cluster.state_dir().pki();
    let health = |files: &Files| {
        let mut curl = Command::new("curl");
        curl.args(["-s", "-o", "/dev/null", "--cacert"])
            .arg(&files.ca_file);
        curl.arg("--cert").arg(&files.certificate_file);
        curl.arg("--key").arg(&files.key_file);
        let url = format!("https://127.0.0.1:{}/health", cluster.ports[1]);
        curl.arg(url).status().unwrap().success()
    };
    let gateway = pki.etcd_client("gateway-0");
    assert!(health(&gateway));
    let stranger = Files {
        ca_file: gateway.ca_file.clone(),
        ..pki.administrator()
    };
    assert!(!health(&stranger));
}
