//! The claims of Pods and their owners.

use setpoint_proto::meta::OwnerReference;
use setpoint_statefulset_controller::plan;

use crate::decisions::cluster::Cluster;

fn settled(when_deleted: &str, when_scaled: &str) -> Cluster {
    let mut cluster = Cluster::new(2).with_claims();
    cluster.retain(when_deleted, when_scaled);
    cluster.settle();
    cluster
}

/// Returns the kinds and names of the owners of a claim.
fn owners(cluster: &Cluster, claim: &str) -> Vec<String> {
    let owners = cluster.claims[claim].metadata.owner_references.iter();
    owners
        .map(|owner| format!("{}/{}", owner.kind, owner.name))
        .collect()
}

#[test]
fn claims_are_created_before_their_pod() {
    let mut cluster = Cluster::new(1).with_claims();
    cluster.reconcile();
    assert_eq!(cluster.steps(), ["claim data-web-0"]);
    cluster.reconcile();
    assert_eq!(cluster.steps(), ["create web-0"]);
    let claim = &cluster.claims["data-web-0"].metadata;
    assert_eq!(claim.labels["app"], "web");
    assert_eq!(claim.namespace, "production");
    assert!(claim.owner_references.is_empty());
}

#[test]
fn claims_are_retained_by_default_and_used_again() {
    let mut cluster = settled("Retain", "Retain");
    cluster.set.spec.replicas = Some(0);
    cluster.settle();
    assert!(cluster.names().is_empty());
    assert_eq!(cluster.claims.len(), 2);
    let before = cluster.claims.clone();
    cluster.set.spec.replicas = Some(2);
    cluster.settle();
    assert_eq!(cluster.claims, before);
}

#[test]
fn a_missing_claim_of_a_pending_pod_is_created() {
    let mut cluster = settled("Retain", "Retain");
    cluster.claims.clear();
    assert!(cluster.steps().is_empty(), "both Pods run");
    cluster.change("web-0").status.phase = "Pending".into();
    cluster.unready("web-0");
    assert_eq!(cluster.steps(), ["claim data-web-0"]);
}

#[test]
fn a_pod_waits_for_the_deletion_of_its_claim() {
    let mut cluster = settled("Retain", "Retain");
    let claim = cluster.claims.get_mut("data-web-1").unwrap();
    claim.metadata.deletion_timestamp = Some(Default::default());
    assert!(cluster.steps().is_empty());
    cluster.pods.remove("web-1");
    assert_eq!(cluster.steps(), ["await data-web-1"]);
    cluster.collect_garbage();
    assert_eq!(cluster.steps(), ["claim data-web-1"]);
}

#[test]
fn the_policy_decides_the_owners_of_claims() {
    let cluster = settled("Delete", "Retain");
    assert_eq!(owners(&cluster, "data-web-1"), ["StatefulSet/web"]);
    for (when_deleted, in_use) in [("Retain", &[][..]), ("Delete", &["StatefulSet/web"][..])] {
        let mut cluster = settled(when_deleted, "Delete");
        assert_eq!(owners(&cluster, "data-web-1"), in_use);
        cluster.set.spec.replicas = Some(1);
        assert_eq!(cluster.steps(), ["own data-web-1"]);
        cluster.reconcile();
        assert_eq!(owners(&cluster, "data-web-1"), ["Pod/web-1"]);
        assert_eq!(cluster.steps(), ["delete web-1"]);
        cluster.settle();
        assert_eq!(cluster.claims.keys().collect::<Vec<_>>(), ["data-web-0"]);
    }
}

#[test]
fn a_changed_policy_changes_the_owners_of_existing_claims() {
    let mut cluster = settled("Retain", "Retain");
    cluster.retain("Delete", "Retain");
    assert_eq!(cluster.steps(), ["own data-web-0", "own data-web-1"]);
    cluster.settle();
    assert_eq!(owners(&cluster, "data-web-0"), ["StatefulSet/web"]);
    cluster.retain("Retain", "Retain");
    cluster.settle();
    assert!(owners(&cluster, "data-web-0").is_empty());
}

#[test]
fn a_claim_of_an_earlier_pod_is_left_to_the_garbage_collector() {
    let mut cluster = settled("Retain", "Delete");
    cluster.set.spec.replicas = Some(1);
    cluster.reconcile();
    cluster.reconcile();
    cluster.pods.remove("web-1");
    cluster.set.spec.replicas = Some(2);
    assert!(cluster.steps().is_empty(), "the claim will be deleted");
    cluster.collect_garbage();
    assert_eq!(cluster.steps(), ["claim data-web-1"]);
}

#[test]
fn a_claim_of_an_earlier_set_delays_no_pod() {
    let mut cluster = settled("Delete", "Delete");
    cluster.pods.remove("web-1");
    let claim = cluster.claims.get_mut("data-web-1").unwrap();
    claim.metadata.owner_references[0].uid = "an earlier set".into();
    assert_eq!(cluster.steps(), ["create web-1"]);
}

#[test]
fn owners_are_changed_while_a_pod_is_pending_and_not_while_a_running_one_blocks() {
    let mut cluster = settled("Retain", "Retain");
    cluster.retain("Delete", "Retain");
    cluster.unready("web-0");
    assert!(cluster.steps().is_empty());
    cluster.change("web-0").status.phase = "Pending".into();
    assert_eq!(cluster.steps(), ["own data-web-0"]);
}

#[test]
fn a_claim_with_another_controller_is_not_owned() {
    let mut cluster = settled("Delete", "Retain");
    let other = OwnerReference {
        kind: "Backup".into(),
        name: "b".into(),
        uid: "b".into(),
        controller: Some(true),
        ..Default::default()
    };
    let claim = cluster.claims.get_mut("data-web-0").unwrap();
    claim.metadata.owner_references.push(other.clone());
    assert_eq!(cluster.steps(), ["own data-web-0"]);
    cluster.reconcile();
    assert_eq!(owners(&cluster, "data-web-0"), ["Backup/b"]);
    assert!(cluster.steps().is_empty());

    let mut cluster = settled("Retain", "Delete");
    let claim = cluster.claims.get_mut("data-web-1").unwrap();
    claim.metadata.owner_references.push(other);
    cluster.set.spec.replicas = Some(1);
    assert_eq!(cluster.steps(), ["delete web-1"], "no Pod gets its claim");
}

#[test]
fn an_owner_that_is_not_the_controller_becomes_it() {
    let mut cluster = settled("Delete", "Retain");
    let claim = cluster.claims.get_mut("data-web-0").unwrap();
    claim.metadata.owner_references[0].controller = None;
    cluster.reconcile();
    let owners = &cluster.claims["data-web-0"].metadata.owner_references;
    assert_eq!((owners.len(), owners[0].controller), (1, Some(true)));
    assert!(plan(&cluster.world()).is_empty());
}

#[test]
fn owners_of_another_kind_or_name_are_kept() {
    let mut cluster = settled("Retain", "Retain");
    for (api_version, kind, name) in [
        ("apps/v1", "StatefulSet", "other"),
        ("apps/v1", "Deployment", "web"),
        ("example.com/v1", "StatefulSet", "web"),
        ("v1", "Pod", "web-1"),
        ("v1", "Service", "web-0"),
        ("example.com/v1", "Pod", "web-0"),
    ] {
        let claim = cluster.claims.get_mut("data-web-0").unwrap();
        claim.metadata.owner_references.push(OwnerReference {
            api_version: api_version.into(),
            kind: kind.into(),
            name: name.into(),
            uid: format!("{kind}-{name}"),
            ..Default::default()
        });
    }
    let kept = owners(&cluster, "data-web-0");
    cluster.retain("Delete", "Delete");
    cluster.reconcile();
    let added = [kept, vec!["StatefulSet/web".into()]].concat();
    assert_eq!(owners(&cluster, "data-web-0"), added);
}
