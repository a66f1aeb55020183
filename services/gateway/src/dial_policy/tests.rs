use jiff::Timestamp;
use setpoint_tls::authority::{Authority, Leaf, Usage};

use super::*;

/// Checks DG22.
const CREDENTIALS: [&str; 8] = [
    "169.254.169.254:80",
    "[::ffff:169.254.169.254]:80",
    "100.100.100.200:80",
    "[::ffff:100.100.100.200]:80",
    "168.63.129.16:80",
    "192.0.0.192:80",
    "[fd00:ec2::254]:80",
    "[fd20:ce::254]:80",
];

fn check(rule: Rule, address: &str) -> bool {
    let policy = DialPolicy::except([2379], 6443);
    policy.check(rule, address.parse().unwrap()).is_ok()
}

/// Checks F29 and DG22.
#[test]
fn only_private_addresses_without_etcd_and_itself_are_allowed() {
    let allowed = [
        "127.0.0.1:8080",
        "10.1.2.3:8080",
        "172.18.0.4:8080",
        "100.64.0.1:8080",
        "[::1]:8080",
        "[fd00::1]:8080",
        "10.255.255.254:6443",
    ];
    let excluded = [
        "[fe80::1]:8080",
        "0.0.0.0:8080",
        "[::]:8080",
        "8.8.8.8:53",
        "224.0.0.1:8080",
        "255.255.255.255:8080",
        "10.1.2.3:2379",
        "127.0.0.1:2379",
        "127.0.0.1:6443",
        "127.0.0.1:0",
    ];
    for rule in [Rule::Replica, Rule::Unverified] {
        for address in allowed {
            assert!(check(rule, address), "{address}");
        }
        for address in excluded.iter().chain(&CREDENTIALS) {
            assert!(!check(rule, address), "{address}");
        }
    }
}

/// Checks F29 and DG22.
#[test]
fn a_verified_server_may_be_outside_of_the_cluster() {
    for address in ["127.0.0.1:8443", "10.1.2.3:443", "8.8.8.8:443"] {
        assert!(check(Rule::Verified, address), "{address}");
    }
    let excluded = [
        "[fe80::1]:443",
        "0.0.0.0:443",
        "10.1.2.3:2379",
        "127.0.0.1:6443",
    ];
    for address in excluded.iter().chain(&CREDENTIALS) {
        assert!(!check(Rule::Verified, address), "{address}");
    }
}

/// Checks V4 and DG22: what proves that an agent is there is its certificate, wherever it is. Without TLS, only the
/// networks of a cluster are reached.
#[test]
fn an_agent_may_be_anywhere_but_where_machines_get_their_credentials() {
    let authority = Authority::create("ca").unwrap();
    let leaf = Leaf {
        name: "system:setpoint:gateway".to_owned(),
        groups: Vec::new(),
        hosts: Vec::new(),
        usage: Usage::Client,
        lifetime: Duration::from_secs(60),
    };
    let own = authority.issue(&leaf).unwrap().credentials().unwrap();
    let plain = DialPolicy::except([2379], 6443);
    let secure = plain.clone().with_credentials(Some(own));
    let check = |policy: &DialPolicy, address: &str| {
        let checked = policy.check(Rule::Agent, address.parse().unwrap());
        checked.is_ok()
    };
    for (address, is_private) in [
        ("127.0.0.1:10250", true),
        ("10.1.2.3:10250", true),
        ("8.8.8.8:10250", false),
    ] {
        assert!(check(&secure, address), "{address}");
        assert_eq!(check(&plain, address), is_private, "{address}");
    }
    let never = [
        "169.254.1.1:10250",
        "[fe80::1]:10250",
        "0.0.0.0:10250",
        "127.0.0.1:2379",
        "127.0.0.1:6443",
    ];
    for address in never.iter().chain(&CREDENTIALS) {
        assert!(!check(&secure, address), "{address}");
        assert!(!check(&plain, address), "{address}");
    }
}

/// Checks V20: the name of a service on a certificate is not enough, since a node may have that name.
#[test]
fn a_replica_is_known_by_the_user_of_its_service_too() {
    let subject = |name: &str, group: &str| PeerIdentity {
        name: name.to_owned(),
        groups: vec![group.to_owned()],
        uid: String::new(),
        fingerprint: String::new(),
        not_after: Timestamp::MAX,
    };
    let scheduler = subject("system:setpoint:scheduler", users::SERVICES);
    let node = subject("system:node:scheduler", NODES);
    assert!(is_of_service(&scheduler, "scheduler"));
    assert!(!is_of_service(&node, "scheduler"));
    assert!(is_of_service(&node, NODE_AGENT));
    assert!(!is_of_service(&scheduler, NODE_AGENT));
    for service in BESIDE_NODE_AGENT {
        let own = subject(&users::of_service(service), users::SERVICES);
        assert!(is_of_service(&own, service) && is_of_service(&node, service));
        assert!(!is_of_service(&scheduler, service));
    }
}

/// Checks F29.
#[tokio::test]
async fn a_host_name_is_checked_by_its_address() {
    let policy = DialPolicy::except([2379], 6443);
    assert!(policy.resolve_replica("localhost", 8080).await.is_ok());
    assert!(policy.resolve_replica("localhost", 2379).await.is_err());
    let error = policy
        .resolve_replica("169.254.169.254", 80)
        .await
        .unwrap_err();
    assert!(
        error.contains("neither a loopback nor a private"),
        "{error}"
    );
    assert!(policy.resolve_replica("", 80).await.is_err());
}
