use std::collections::BTreeMap;

use jiff::SignedDuration;
use setpoint_tls::Validity;
use setpoint_tls::authority::Authority;

use super::*;
use crate::launcher::ClusterSpec;
use crate::launcher::StateDir;
use crate::launcher::topology::stages;

struct Fixture {
    _root: tempfile::TempDir,
    processes: Vec<ProcessSpec>,
    pki: Pki,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        let stages = stages(&state_dir, &ClusterSpec::default());
        let fixture = Self {
            processes: stages.into_iter().flatten().collect(),
            pki: state_dir.pki(),
            _root: root,
        };
        let _lock = fixture.pki.lock().unwrap();
        let made = Timestamp::now() - SignedDuration::from_hours(5);
        for name in ["ca", "etcd-ca"] {
            let authority = Authority::create_at(name, made).unwrap();
            let file = |end| fixture.pki.directory.join(format!("{name}.{end}"));
            authority.write(&file("crt"), &file("key")).unwrap();
        }
        fixture
    }

    fn ensure(&self) -> usize {
        self.pki.ensure(&self.processes).unwrap()
    }

    /// Returns the user and the groups of each certificate by folder.
    fn users(&self) -> BTreeMap<String, (String, Vec<String>)> {
        let found = self.pki.directories().into_iter().filter_map(|directory| {
            let files = Files::in_directory(&directory);
            let leaf = Present::read(&files.certificate_file).ok()?.leaf;
            Some((self.pki.name_of(&directory), (leaf.name, leaf.groups)))
        });
        found.collect()
    }

    /// Replaces a certificate by one with this time left of a life of three hours.
    fn age(&self, folder: &str, left: SignedDuration) {
        let directory = self.pki.directory.join(folder);
        let files = Files::in_directory(&directory);
        let leaf = Present::read(&files.certificate_file).unwrap().leaf;
        let authorities = Authorities::load(&self.pki.directory).unwrap();
        let authority = authorities.of(&directory).authority();
        let not_after = Timestamp::now() + left;
        let validity = Validity {
            // An hour before it was issued.
            not_before: not_after - SignedDuration::from_hours(4),
            not_after,
        };
        let issued = authority.issue_for(&leaf, validity).unwrap();
        issued.write(&files).unwrap();
    }
}

#[test]
fn each_process_has_an_identity_of_its_own() {
    let fixture = Fixture::new();
    // 13 processes, a gateway as a client of etcd, and the administrator; none for the process of certificates.
    assert_eq!(fixture.ensure(), 15);
    let users = fixture.users();
    let user = |folder: &str| {
        let (user, groups) = &users[folder];
        (user.as_str(), groups.join(","))
    };
    let services = "system:setpoint".to_owned();
    assert_eq!(
        user("gateway-0"),
        ("system:setpoint:gateway", services.clone())
    );
    assert_eq!(
        user("scheduler-1"),
        ("system:setpoint:scheduler", services.clone())
    );
    assert_eq!(
        user("gateway-0/etcd"),
        ("system:setpoint:gateway", services)
    );
    assert_eq!(
        user("node-agent-0"),
        ("system:node:node-0", "system:nodes".to_owned())
    );
    let simulated = "system:setpoint:simulated-nodes";
    assert_eq!(
        user("node-agent-2"),
        (
            "system:setpoint:simulated-nodes:simulated",
            simulated.to_owned()
        )
    );
    assert_eq!(user("admin"), ("system:admin", "system:masters".to_owned()));
    assert!(!users.contains_key("certs-0"));
}

#[test]
fn etcd_and_its_clients_have_a_ca_of_their_own() {
    let fixture = Fixture::new();
    fixture.ensure();
    let ca = |folder: &str| {
        fs::read_to_string(fixture.pki.directory.join(folder).join("ca.crt")).unwrap()
    };
    assert_eq!(ca("etcd-0"), ca("gateway-0/etcd"));
    assert_eq!(ca("gateway-0"), ca("admin"));
    assert_ne!(ca("etcd-0"), ca("gateway-0"));
}

#[test]
fn certificates_are_kept_until_they_are_due_or_their_names_change() {
    let fixture = Fixture::new();
    fixture.ensure();
    assert_eq!(fixture.ensure(), 0);
    fixture.age("gateway-0", SignedDuration::from_mins(61));
    assert_eq!(fixture.ensure(), 0, "more than a third of its life is left");
    fixture.age("gateway-0", SignedDuration::from_mins(59));
    assert_eq!(fixture.ensure(), 1);
    let mut processes = fixture.processes.clone();
    for process in &mut processes {
        let identity = process.identity.take();
        process.identity = identity.map(|identity| match process.service {
            "gateway" => identity.reached_at(["example.com"]),
            _ => identity,
        });
    }
    assert_eq!(fixture.pki.ensure(&processes).unwrap(), 1);
}

#[test]
fn a_renewed_certificate_says_what_the_one_before_said() {
    let fixture = Fixture::new();
    fixture.ensure();
    assert_eq!(fixture.pki.renew_due().unwrap(), Vec::<String>::new());
    let before = fixture.users();
    fixture.age("scheduler-0", SignedDuration::from_mins(-1));
    fixture.age("gateway-0/etcd", SignedDuration::from_mins(1));
    let mut renewed = fixture.pki.renew_due().unwrap();
    renewed.sort();
    assert_eq!(renewed, ["gateway-0/etcd", "scheduler-0"]);
    assert_eq!(fixture.users(), before);
    assert_eq!(fixture.ensure(), 0, "names are the same, too");
}

#[test]
fn a_certificate_by_another_ca_is_replaced() {
    let fixture = Fixture::new();
    let made = fixture.ensure();
    for file in ["ca.crt", "ca.key"] {
        fs::remove_file(fixture.pki.directory.join(file)).unwrap();
    }
    assert_eq!(fixture.ensure(), made - 2, "all but those of etcd");
}

/// Returns the certificates of the CAs that a process trusts.
fn trusted(fixture: &Fixture, folder: &str) -> usize {
    let file = fixture.pki.directory.join(folder).join("ca.crt");
    let text = fs::read_to_string(file).unwrap();
    text.matches("BEGIN CERTIFICATE").count()
}

#[test]
fn a_change_of_the_cas_goes_on_where_it_was_interrupted() {
    let fixture = Fixture::new();
    let made = fixture.ensure();
    let pki = &fixture.pki;
    let old = fs::read_to_string(pki.directory.join("ca.crt")).unwrap();
    let leaf = pki.directory.join("gateway-0").join("tls.crt");
    let before = fs::read(&leaf).unwrap();
    for _ in 0..2 {
        pki.prepare_authorities().unwrap();
        assert_eq!(pki.stage().unwrap(), Stage::Prepared);
    }
    assert_eq!(
        fs::read(&leaf).unwrap(),
        before,
        "nothing is by the next CA"
    );
    assert_eq!(fixture.ensure(), 0);
    for folder in ["gateway-0", "gateway-0/etcd", "etcd-0", "admin"] {
        assert_eq!(trusted(&fixture, folder), 2, "{folder}");
    }
    // As if the switch had ended before the next CA was installed.
    let cross = pki.directory.join("ca-cross.crt");
    Authorities::load(&pki.directory)
        .unwrap()
        .cluster
        .sign_next()
        .unwrap();
    assert!(cross.exists());
    assert_eq!(pki.switch_authorities().unwrap(), made);
    assert_eq!(pki.stage().unwrap(), Stage::Switched);
    assert_ne!(
        fs::read_to_string(pki.directory.join("ca.crt")).unwrap(),
        old
    );
    for left in ["ca-next.crt", "ca-next.key", "etcd-ca-next.key"] {
        assert!(!pki.directory.join(left).exists(), "{left}");
    }
    assert_eq!(fixture.ensure(), 0);
    assert_eq!(trusted(&fixture, "gateway-0"), 2);

    pki.remove_previous_authorities().unwrap();
    assert_eq!(pki.stage().unwrap(), Stage::Steady);
    assert_eq!(trusted(&fixture, "gateway-0"), 1);
    assert_eq!(trusted(&fixture, "etcd-0"), 1);
    assert_eq!(fixture.ensure(), 0);
}
