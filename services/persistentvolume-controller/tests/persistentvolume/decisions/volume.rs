//! Plans and statuses of volumes.

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Outcome, View as _};
use setpoint_model::Key;
use setpoint_persistentvolume_controller::volume::{self, ClaimState, VolumeView};
use setpoint_proto::core::{CsiPersistentVolumeSource, PersistentVolume};

use crate::decisions::fixture::{LOCAL_PATH, PROVISIONED_BY, Reserved, actions, disk};

/// A volume by what its plan and its status depend on.
#[derive(Clone, Debug)]
struct Case {
    phase: &'static str,
    policy: &'static str,
    provisioner: Option<&'static str>,
    claim: ClaimState,
    protected: bool,
    deleting: bool,
    missing_node: Option<&'static str>,
    is_csi: bool,
}

impl Case {
    fn world(&self) -> volume::World {
        let mut object = disk(Reserved::Own, "1Gi");
        object.status.phase = self.phase.into();
        object.status.reason = "Former".into();
        object.status.last_phase_transition_time = Some(Timestamp::UNIX_EPOCH.into());
        object.spec.persistent_volume_reclaim_policy = self.policy.into();
        let provisioner = self
            .provisioner
            .map(|name| (PROVISIONED_BY.into(), name.into()));
        object.metadata.annotations.extend(provisioner);
        if !self.protected {
            object.metadata.finalizers = vec![LOCAL_PATH.into()];
        }
        if self.is_csi {
            let csi = &mut object.spec.persistent_volume_source.csi;
            *csi = Some(CsiPersistentVolumeSource::default());
        }
        let mut view = VolumeView::of(object);
        view.volume.meta.deleting = self.deleting;
        volume::World {
            volume: Arc::new(view),
            claim: self.claim.clone(),
            missing_node: self.missing_node.map(str::to_owned),
        }
    }
}

/// A released volume of this controller.
const OURS: Case = Case {
    phase: "Released",
    policy: "Delete",
    provisioner: Some(LOCAL_PATH),
    claim: ClaimState::Gone,
    protected: true,
    deleting: false,
    missing_node: None,
    is_csi: false,
};

#[test]
fn a_volume_is_protected_unbound_let_go_or_deleted() {
    use ClaimState::{Bound, BoundElsewhere, Gone, Named, None as Nobody, Unbound};
    use volume::Action;
    let elsewhere = || Case {
        claim: BoundElsewhere,
        ..OURS
    };
    let ending = || Case {
        deleting: true,
        ..OURS
    };
    let gone = || Case {
        protected: false,
        ..ending()
    };
    let delete = || Action::Delete {
        claim: Key::new("shop", "data"),
    };
    let abandon = || Action::Abandon { node: "one".into() };
    #[rustfmt::skip]
    let cases = [
        (OURS, Some(delete())),
        (Case { phase: "Failed", ..OURS }, Some(delete())),
        (Case { phase: "Bound", ..OURS }, None),
        (Case { policy: "Retain", ..OURS }, None),
        (Case { provisioner: None, ..OURS }, None),
        (Case { provisioner: Some("example.com/disk"), ..OURS }, None),
        (Case { claim: Nobody, ..OURS }, None),
        (Case { claim: Named, ..OURS }, None),
        (Case { claim: Unbound, ..OURS }, None),
        (Case { claim: Bound, ..OURS }, None),
        (Case { protected: false, ..OURS }, Some(Action::Protect)),
        (elsewhere(), Some(delete())),
        (Case { provisioner: Some("example.com/disk"), ..elsewhere() }, None),
        (Case { provisioner: None, ..elsewhere() }, Some(Action::Unbind)),
        (Case { policy: "Retain", ..elsewhere() }, Some(Action::Unbind)),
        (ending(), Some(Action::Unprotect)),
        (Case { phase: "Bound", ..ending() }, None),
        (Case { phase: "Available", claim: Bound, ..ending() }, None),
        (Case { phase: "Available", claim: Unbound, ..ending() }, Some(Action::Unprotect)),
        (gone(), None),
        (Case { missing_node: Some("one"), ..gone() }, Some(abandon())),
        (Case { missing_node: Some("one"), ..ending() }, Some(Action::Unprotect)),
        (Case { missing_node: Some("one"), claim: Gone, ..OURS }, Some(delete())),
    ];
    for (case, expected) in cases {
        let expected: Vec<_> = expected.into_iter().collect();
        assert_eq!(actions(volume::plan(&case.world())), expected, "{case:?}");
    }
}

#[test]
fn a_volume_of_a_node_has_a_label_with_its_name() {
    let mut object = disk(Reserved::Own, "1Gi");
    object.metadata.finalizers = vec![LOCAL_PATH.into()];
    let planned = |object: &PersistentVolume| {
        actions(volume::plan(&volume::World {
            volume: Arc::new(VolumeView::of(object.clone())),
            claim: ClaimState::Bound,
            missing_node: None,
        }))
    };
    let is_labelled = |object: &PersistentVolume| {
        let label = volume::Action::Label { node: "one".into() };
        !planned(object).contains(&label)
    };
    assert!(is_labelled(&object), "it has no folder of a node");
    let node = ("setpoint.dev/node".to_owned(), "one".to_owned());
    object.metadata.annotations.extend([node.clone()]);
    assert!(!is_labelled(&object));
    object.metadata.labels.extend([node]);
    assert!(is_labelled(&object));
    object
        .metadata
        .labels
        .insert("setpoint.dev/node".into(), "two".into());
    assert!(!is_labelled(&object));
}

#[test]
fn the_phase_of_a_volume_follows_from_its_claim_and_a_failure_to_reclaim_it() {
    use ClaimState::{Bound, BoundElsewhere, Named, None as Nobody, Unbound};
    let of_policy = |policy, provisioner| Case {
        policy,
        provisioner,
        ..OURS
    };
    let new = |claim| Case {
        phase: "",
        policy: "Retain",
        claim,
        ..OURS
    };
    let recycled = || of_policy("Recycle", None);
    const RECYCLE: &str = "VolumeFailedRecycle";
    const DELETE: &str = "VolumeFailedDelete";
    // The phase after, and the reason of the failure; nothing if the status stays.
    #[rustfmt::skip]
    let cases = [
        (new(Nobody), Some(("Available", ""))),
        (new(Named), Some(("Available", ""))),
        (new(Unbound), Some(("Bound", ""))),
        (new(Bound), Some(("Bound", ""))),
        (new(BoundElsewhere), Some(("Bound", ""))),
        (Case { phase: "Failed", ..new(Bound) }, Some(("Bound", ""))),
        (Case { phase: "Bound", ..OURS }, Some(("Released", ""))),
        (OURS, None),
        (Case { phase: "Bound", ..recycled() }, Some(("Released", ""))),
        (recycled(), Some(("Failed", RECYCLE))),
        (Case { phase: "Failed", ..recycled() }, None),
        (Case { phase: "Failed", ..of_policy("Retain", None) }, None),
        (of_policy("Delete", Some("example.com/disk")), None),
        (of_policy("Delete", Some("kubernetes.io/aws-ebs")), Some(("Failed", DELETE))),
        (of_policy("Delete", None), Some(("Failed", DELETE))),
        (Case { is_csi: true, ..of_policy("Delete", None) }, None),
        (of_policy("Retain", None), None),
    ];
    for (case, expected) in cases {
        let world = case.world();
        let status = volume::status(&world, &Outcome::default());
        let found = status.as_ref().map(|status| {
            let notice = volume::notice(&world, status);
            let told = notice.as_ref();
            let told = told.map(|notice| (notice.reason, &*notice.message));
            assert_eq!(
                told.unwrap_or_default(),
                (&*status.reason, &*status.message)
            );
            assert!(notice.is_none_or(|notice| notice.is_warning));
            assert_eq!(status.last_phase_transition_time, None);
            (&*status.phase, &*status.reason)
        });
        assert_eq!(found, expected, "{case:?}");
    }
    let world = Case {
        phase: "Bound",
        protected: false,
        ..OURS
    }
    .world();
    let planned = Outcome::of(volume::plan(&world));
    assert_eq!(
        volume::status(&world, &planned),
        None,
        "a write was planned"
    );
}
