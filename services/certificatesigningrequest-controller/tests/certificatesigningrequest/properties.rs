//! Properties of the plan for a request, over random decisions and times.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use proptest::prelude::*;
use rcgen::{CertificateParams, DnType, KeyPair};
use setpoint_certificatesigningrequest_controller::{Action, RequestView, World, plan};
use setpoint_controller::View as _;
use setpoint_proto::certificates::{CertificateSigningRequest, CertificateSigningRequestCondition};

const CREATED: i64 = 1_700_000_000;
const SIGNERS: [&str; 4] = [
    "kubernetes.io/kube-apiserver-client",
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
    "example.com/signer",
];

/// A request of a node for its client certificate.
static OF_NODE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut params = CertificateParams::default();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::CommonName, "system:node:one");
    subject.push(DnType::OrganizationName, "system:nodes");
    let key = KeyPair::generate().unwrap();
    let request = params.serialize_request(&key).unwrap();
    request.pem().unwrap().into_bytes()
});

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(CREATED + second).unwrap()
}

fn condition(of: &str, at: Timestamp) -> CertificateSigningRequestCondition {
    CertificateSigningRequestCondition {
        r#type: of.into(),
        status: "True".into(),
        last_update_time: at.into(),
        ..Default::default()
    }
}

prop_compose! {
    fn worlds()(
        signer in prop::sample::select(SIGNERS.to_vec()),
        is_valid in any::<bool>(),
        decisions in prop::collection::btree_map(
            prop::sample::select(vec!["Approved", "Denied", "Failed"]), 0_i64..7200, 0..3,
        ),
        is_issued in any::<bool>(),
        expires in prop::option::of(0_i64..7200),
        now in 0_i64..100_000,
    ) -> World {
        let mut object = CertificateSigningRequest::default();
        object.metadata.name = "one".into();
        object.metadata.creation_timestamp = at(0).into();
        object.spec.signer_name = signer.into();
        object.spec.username = "system:node:one".into();
        object.spec.usages = vec!["digital signature".into(), "client auth".into()];
        object.spec.request = if is_valid { OF_NODE.clone() } else { b"none".to_vec() }.into();
        let conditions = decisions.iter().map(|(of, second)| condition(of, at(*second)));
        object.status.conditions = conditions.collect();
        let mut request = RequestView::of(object);
        request.is_issued = is_issued;
        request.expires = expires.filter(|_| is_issued).map(at);
        World { request: Arc::new(request), now: at(now) }
    }
}

/// Applies an action. Returns whether the request still exists.
fn apply(world: &mut World, action: Action) -> bool {
    let now = world.now;
    let request = Arc::make_mut(&mut world.request);
    match action {
        Action::Approve { .. } => request.conditions.push(condition("Approved", now)),
        Action::Sign(_) => request.is_issued = true,
        Action::Fail(_) => request.conditions.push(condition("Failed", now)),
        Action::Delete => return false,
    }
    true
}

proptest! {
    /// Each write is a plan of its own, so that a crash after any of them leaves a state that is among these.
    #[test]
    fn a_request_settles_in_two_writes(mut world in worlds()) {
        for _ in 0..2 {
            let steps = plan(&world).steps;
            prop_assert!(steps.len() <= 1, "writes of one object in one plan: {steps:?}");
            for step in steps {
                if !apply(&mut world, step.action) {
                    return Ok(());
                }
            }
        }
        prop_assert!(plan(&world).is_empty(), "{:?}", plan(&world));
    }

    #[test]
    fn only_a_request_that_is_approved_and_not_refused_is_signed(world in worlds()) {
        for step in plan(&world).steps {
            let request = &world.request;
            match step.action {
                Action::Sign(_) | Action::Fail(_) => {
                    prop_assert!(request.is_approved() && !request.is_issued);
                    prop_assert!(request.spec.signer_name != SIGNERS[3]);
                }
                Action::Approve { of_itself } => {
                    prop_assert!(request.is_pending() && of_itself);
                    prop_assert_eq!(&*request.spec.signer_name, SIGNERS[1]);
                }
                Action::Delete => prop_assert!(world.now > at(0)),
            }
        }
    }

    #[test]
    fn the_order_of_conditions_does_not_matter(world in worlds()) {
        let mut reversed = world.clone();
        Arc::make_mut(&mut reversed.request).conditions.reverse();
        let actions = |world: &World| {
            let plan = plan(world);
            let actions = plan.steps.into_iter().map(|step| step.action);
            (actions.collect::<Vec<_>>(), plan.again)
        };
        prop_assert_eq!(actions(&world), actions(&reversed));
    }

    #[test]
    fn a_request_that_is_being_deleted_plans_nothing(mut world in worlds()) {
        Arc::make_mut(&mut world.request).meta.deleting = true;
        prop_assert!(plan(&world).is_empty());
    }
}
