//! The names of a walk along the search path.

use hickory_proto::rr::{Name, RecordType};
use setpoint_dns::expand;

use crate::cluster::{index, zone};

fn expanded(client: &str, name: &str, of: RecordType) -> Vec<String> {
    let search = [Name::from_ascii("example.com.").unwrap()];
    let name = Name::from_ascii(name).unwrap();
    let names = expand(
        &zone(),
        &index(),
        client.parse().unwrap(),
        &name,
        of,
        &search,
    );
    names.iter().map(Name::to_ascii).collect()
}

#[test]
fn the_first_name_of_a_pods_walk_is_followed_by_the_others() {
    let expected = [
        "www.google.com.svc.cluster.local.",
        "www.google.com.cluster.local.",
        "www.google.com.example.com.",
        "www.google.com.",
    ];
    let asked = "www.google.com.default.svc.cluster.local.";
    assert_eq!(expanded("10.0.0.6", asked, RecordType::A), expected);
    assert!(expanded("10.0.0.6", asked, RecordType::TXT).is_empty());
    assert!(
        expanded("10.0.0.99", asked, RecordType::A).is_empty(),
        "no Pod"
    );
    let other = "www.google.com.kube-system.svc.cluster.local.";
    assert!(
        expanded("10.0.0.6", other, RecordType::A).is_empty(),
        "another namespace"
    );
}
