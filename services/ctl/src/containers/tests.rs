//! Tests of the volumes as a whole.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use setpoint_model::users::MONITORING;
use setpoint_tls::authority::Present;
use setpoint_tls::{Credentials, Files};

use super::volumes::Volumes;
use crate::launcher::proxy::PROXY;
use crate::launcher::topology::SERVICES;

struct Fixture {
    root: tempfile::TempDir,
    volumes: Volumes,
}

impl Fixture {
    /// Makes the folders that are volumes of the engine.
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for volume in SERVICES
            .into_iter()
            .chain([PROXY, "etcd", "prometheus", "front"])
        {
            fs::create_dir(root.path().join(volume)).unwrap();
        }
        let volumes = Volumes {
            root: root.path().to_owned(),
            server: "https://127.0.0.1:7443".to_owned(),
            names: ["example.com", "10.112.0.1"].map(str::to_owned).into(),
            owner_of: None,
        };
        Self { root, volumes }
    }

    fn files(&self, folder: &str) -> Files {
        Files::in_directory(&self.root.path().join(folder))
    }

    fn mode(&self, path: &str) -> u32 {
        let found = fs::metadata(self.root.path().join(path)).unwrap();
        found.permissions().mode() & 0o777
    }

    fn request(&self, node: &str) {
        let path = self.root.path().join("node-agent/requests").join(node);
        fs::write(path, "").unwrap();
    }
}

#[test]
fn each_service_has_credentials_that_its_group_can_read_and_nothing_else() {
    let fixture = Fixture::new();
    assert!(fixture.volumes.missing().unwrap().is_some());
    assert_eq!(fixture.volumes.ensure().unwrap().len(), 11);
    assert_eq!(fixture.volumes.missing().unwrap(), None);
    assert_eq!(fixture.volumes.ensure().unwrap(), [""; 0]);
    let gateway = Present::read(&fixture.files("gateway").certificate_file).unwrap();
    assert_eq!(gateway.leaf.name, "system:setpoint:gateway");
    for name in [
        "gateway",
        "front",
        "localhost",
        "kubernetes.default.svc",
        "example.com",
        "10.112.0.1",
    ] {
        assert!(gateway.leaf.hosts.iter().any(|host| host == name), "{name}");
    }
    let scraper = Present::read(&fixture.files("prometheus").certificate_file).unwrap();
    assert_eq!(scraper.leaf.groups, [MONITORING]);
    let ca = |folder| fs::read_to_string(fixture.files(folder).ca_file).unwrap();
    assert_eq!(ca("etcd"), ca("gateway/etcd"));
    assert_ne!(ca("etcd"), ca("gateway"));
    assert_eq!(ca("front"), ca("gateway"));
    for key in ["gateway/tls.key", "gateway/etcd/tls.key", "etcd/tls.key"] {
        assert_eq!(fixture.mode(key), 0o640, "{key}");
    }
    for own in [
        "pki/ca.key",
        "pki/etcd-ca.key",
        "pki/admin/tls.key",
        "state/compose/kubeconfig",
    ] {
        assert_eq!(fixture.mode(own), 0o600, "{own}");
    }
    assert_eq!(fixture.mode("pki"), 0o700);
}

#[test]
fn nodes_get_the_certificate_that_they_ask_for() {
    let fixture = Fixture::new();
    fixture.volumes.ensure().unwrap();
    assert!(!fixture.volumes.is_asked());
    for name in ["node-1", "Node", "etcd", "requests"] {
        fixture.request(name);
    }
    assert!(fixture.volumes.is_asked());
    let mut made = fixture.volumes.ensure().unwrap();
    made.sort();
    assert_eq!(made, ["node-agent/etcd", "node-agent/node-1"]);
    assert!(!fixture.volumes.is_asked());
    let leaf = |node: &str| {
        let files = fixture.files(&format!("node-agent/{node}"));
        Credentials::load(&files).unwrap();
        let ca = fs::read_to_string(&files.ca_file).unwrap();
        assert_eq!(
            ca,
            fs::read_to_string(fixture.files("gateway").ca_file).unwrap()
        );
        Present::read(&files.certificate_file).unwrap().leaf
    };
    assert_eq!(leaf("node-1").name, "system:node:node-1");
    assert!(leaf("node-1").hosts.iter().any(|host| host == "node-agent"));
    assert_eq!(
        leaf("etcd").name,
        "system:node:etcd",
        "by the CA of the cluster"
    );
}

#[test]
fn a_new_ca_issues_everything_again() {
    let fixture = Fixture::new();
    let made = fixture.volumes.ensure().unwrap();
    fs::remove_dir_all(fixture.root.path().join("pki")).unwrap();
    assert_eq!(fixture.volumes.ensure().unwrap(), made);
    let kubeconfig =
        fs::read_to_string(fixture.root.path().join("state/compose/kubeconfig")).unwrap();
    assert!(kubeconfig.contains("server: https://127.0.0.1:7443"));
}
