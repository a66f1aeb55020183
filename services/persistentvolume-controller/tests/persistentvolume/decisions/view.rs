//! The views of claims, classes and nodes.

use setpoint_controller::View as _;
use setpoint_model::Meta;
use setpoint_persistentvolume_controller::claim::ClaimView;
use setpoint_persistentvolume_controller::{ClassView, NodeView};
use setpoint_proto::core::Node;
use setpoint_proto::storage::StorageClass;

use crate::decisions::fixture::{BIND_COMPLETED, LOCAL_PATH, claim, class};

#[test]
fn a_class_is_the_default_by_either_of_its_annotations() {
    for (annotation, value, is_default) in [
        ("storageclass.kubernetes.io/is-default-class", "true", true),
        (
            "storageclass.beta.kubernetes.io/is-default-class",
            "true",
            true,
        ),
        (
            "storageclass.kubernetes.io/is-default-class",
            "false",
            false,
        ),
        ("example.com/is-default-class", "true", false),
    ] {
        let mut class = StorageClass::default();
        let annotations = &mut class.metadata.annotations;
        annotations.insert(annotation.into(), value.into());
        class.metadata.labels.insert("a".into(), "b".into());
        let view = ClassView::of(class);
        assert_eq!(view.is_default, is_default, "{annotation} {value}");
        assert_eq!((&*view.reclaim_policy, view.is_delayed), ("Delete", false));
        assert_eq!(view.meta, Meta::default());
    }
    let view = ClassView::of(class());
    assert_eq!((&*view.reclaim_policy, view.is_delayed), ("Retain", true));
    assert_eq!((&*view.provisioner, view.parameters), (LOCAL_PATH, vec![]));
}

#[test]
fn a_node_has_its_host_name_and_its_folder() {
    let mut node = Node::default();
    let labels = &mut node.metadata.labels;
    labels.insert("kubernetes.io/hostname".into(), "host-one".into());
    labels.insert("a".into(), "b".into());
    let annotations = &mut node.metadata.annotations;
    annotations.insert(LOCAL_PATH.into(), "/volumes".into());
    let view = NodeView::of(node);
    assert_eq!(view.hostname.as_deref(), Some("host-one"));
    assert_eq!(view.folder, Some(("/volumes".to_owned(), true)));
    assert_eq!(view.meta, Meta::default());
    assert_eq!(NodeView::of(Node::default()).folder, None);
}

#[test]
fn only_claims_that_are_not_bound_have_the_tag_of_those() {
    assert_eq!(ClaimView::of(claim()).tag(), Some("unbound"));
    let mut bound = claim();
    let annotations = &mut bound.metadata.annotations;
    annotations.insert(BIND_COMPLETED.into(), "yes".into());
    assert_eq!(ClaimView::of(bound).tag(), None);
}
