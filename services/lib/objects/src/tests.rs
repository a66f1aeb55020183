use setpoint_model::{Meta, Target, owner};
use setpoint_proto::Reason;
use setpoint_proto::apps::ReplicaSet;
use setpoint_proto::core::{Container, Pod};
use setpoint_proto::meta::LabelSelector;

use crate::Objects;

fn objects() -> Objects {
    Objects::new("production", "2026-01-05T00:00:00Z".parse().unwrap())
}

fn pod(name: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = name.into();
    pod.metadata.labels = [("app".to_owned(), "web".to_owned())].into();
    pod.spec.containers.push(Container {
        name: "main".into(),
        image: "web".into(),
        ..Default::default()
    });
    pod
}

fn set() -> ReplicaSet {
    let pod = pod("web");
    let mut set = ReplicaSet::default();
    set.metadata.name = "web".into();
    set.spec.selector = Some(LabelSelector {
        match_labels: pod.metadata.labels.clone(),
        ..Default::default()
    });
    set.spec.template.metadata.labels = pod.metadata.labels;
    set.spec.template.spec = pod.spec;
    set
}

fn target(pod: &Pod) -> Target {
    Target::of(&Meta::of(&pod.metadata))
}

#[test]
fn a_new_object_has_defaults_and_an_identity_and_must_be_valid() {
    let mut objects = objects();
    let web = objects.create(set()).unwrap();
    assert_eq!(web.spec.replicas, Some(1));
    assert_eq!(web.metadata.generation, 1);
    assert_eq!(web.metadata.namespace, "production");
    assert_eq!(
        web.metadata.creation_timestamp.timestamp(),
        Some(objects.now)
    );
    let mut invalid = set();
    invalid.metadata.name = "Not a name".into();
    let refused = objects.create(invalid).unwrap_err();
    assert_eq!(refused.reason, Reason::Invalid);
    let taken = objects.create(set()).unwrap_err();
    assert_eq!(taken.reason, Reason::AlreadyExists);
    let second = objects.create(pod("web")).unwrap();
    assert_ne!(second.metadata.uid, web.metadata.uid);
}

#[test]
fn an_update_and_an_update_of_the_status_change_their_part_only() {
    let mut objects = objects();
    let mut web = objects.create(set()).unwrap();
    (web.spec.replicas, web.status.replicas) = (Some(3), 2);
    objects.update(web.clone()).unwrap();
    let updated: ReplicaSet = objects.get("web").unwrap();
    assert_eq!(
        (updated.spec.replicas, updated.status.replicas),
        (Some(3), 0)
    );
    assert_eq!(updated.metadata.generation, 2);
    let stale = objects.update_status(web.clone()).unwrap_err();
    assert_eq!(stale.reason, Reason::Conflict);
    let status = ReplicaSet {
        metadata: updated.metadata.clone(),
        ..web
    };
    objects.update_status(status).unwrap();
    let reported: ReplicaSet = objects.get("web").unwrap();
    assert_eq!(
        (reported.spec.replicas, reported.status.replicas),
        (Some(3), 2)
    );
    assert_eq!(reported.metadata.generation, 2);
}

#[test]
fn what_is_not_changed_is_not_written() {
    let mut objects = objects();
    objects.create(set()).unwrap();
    let before = objects.revision();
    objects.edit::<ReplicaSet>("web", |_| {});
    assert_eq!(objects.revision(), before);
}

#[test]
fn a_grace_period_and_finalizers_keep_an_object_that_is_deleted() {
    let mut objects = objects();
    let mut held = pod("held");
    held.metadata.finalizers = vec!["example.com/hold".into()];
    objects.create(held).unwrap();
    objects.create(pod("unbound")).unwrap();
    objects.create(pod("bound")).unwrap();
    objects.bind::<Pod>("bound", "node").unwrap();
    for name in ["held", "unbound", "bound"] {
        objects.delete::<Pod>(name).unwrap();
    }
    let names = |objects: &Objects| {
        let pods = objects.list::<Pod>().into_iter();
        pods.map(|pod| pod.metadata.name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&objects), ["bound", "held"]);
    objects.delete_now::<Pod>("bound").unwrap();
    objects.edit::<Pod>("held", |pod| pod.metadata.finalizers.clear());
    assert_eq!(names(&objects), Vec::<String>::new());
}

#[test]
fn an_observed_version_is_changed_and_deleted_only_as_it_was_observed() {
    let mut objects = objects();
    let web = objects.create(set()).unwrap();
    let owner = Meta::of(&web.metadata);
    let seen = target(&objects.create(pod("web-1")).unwrap());
    objects.adopt::<ReplicaSet, Pod>(&owner, &seen).unwrap();
    let refused = [
        objects.adopt::<ReplicaSet, Pod>(&owner, &seen),
        objects.release::<Pod>(&owner, &seen),
        objects.delete_unchanged::<Pod>(&seen),
    ];
    for refused in refused {
        assert_eq!(refused.unwrap_err().reason, Reason::Conflict);
    }
    let adopted: Pod = objects.get("web-1").unwrap();
    assert_eq!(
        adopted.metadata.owner_references,
        [owner::reference_to(&web)]
    );
    objects.create_or_take(&owner, pod("web-1")).unwrap();
    objects.delete_unchanged::<Pod>(&target(&adopted)).unwrap();
    objects.delete_unchanged::<Pod>(&target(&adopted)).unwrap();
    objects.create(pod("web-1")).unwrap();
    let foreign = objects.create_or_take(&owner, pod("web-1")).unwrap_err();
    assert_eq!(foreign.reason, Reason::AlreadyExists);
}

#[test]
fn a_cache_shows_the_objects_as_of_the_revision_that_it_has_reached() {
    let mut objects = objects();
    objects.create(pod("first")).unwrap();
    let cached = objects.revision();
    objects.create(pod("second")).unwrap();
    objects.delete::<Pod>("first").unwrap();
    let seen = objects.as_of(cached);
    assert!(seen.get::<Pod>("first").is_some());
    assert_eq!(seen.list::<Pod>().len(), 1);
    assert_eq!(objects.get::<Pod>("first"), None);
    assert_eq!(objects.list::<Pod>()[0].metadata.name, "second");
}

#[test]
fn no_write_is_made_after_a_crash() {
    let mut objects = objects();
    objects.crash_after(Some(1));
    objects.create(pod("first")).unwrap();
    assert!(objects.has_crashed());
    objects.create(pod("second")).unwrap_err();
    objects.delete::<Pod>("first").unwrap_err();
    objects.crash_after(None);
    assert_eq!(objects.list::<Pod>().len(), 1);
    objects.delete::<Pod>("first").unwrap();
}
