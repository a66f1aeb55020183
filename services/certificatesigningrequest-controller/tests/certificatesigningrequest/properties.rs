//! Properties of the plan for a request, over random decisions and times.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use proptest::prelude::*;
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use setpoint_certificatesigningrequest_controller::{
    Action, Approval, NodeView, RequestView, TokenView, World, plan,
};
use setpoint_controller::View as _;
use setpoint_model::bootstrap_token::JOINING_AGENTS;
use setpoint_proto::certificates::{CertificateSigningRequest, CertificateSigningRequestCondition};
use setpoint_proto::core::{Node, NodeAddress, Secret};

const CREATED: i64 = 1_700_000_000;
const SIGNERS: [&str; 4] = [
    "kubernetes.io/kube-apiserver-client",
    "kubernetes.io/kube-apiserver-client-kubelet",
    "kubernetes.io/kubelet-serving",
    "example.com/signer",
];

/// Those who ask: a node, an agent that joins, somebody else.
const USERS: [&str; 3] = ["system:node:one", "system:bootstrap:abcdef", "jane"];

fn request_for(address: Option<[u8; 4]>) -> Vec<u8> {
    let mut params = CertificateParams::default();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::CommonName, "system:node:one");
    subject.push(DnType::OrganizationName, "system:nodes");
    let san = address.map(|address| SanType::IpAddress(address.into()));
    params.subject_alt_names.extend(san);
    let key = KeyPair::generate().unwrap();
    let request = params.serialize_request(&key).unwrap();
    request.pem().unwrap().into_bytes()
}

/// A request of a node for its client certificate.
static OF_NODE: LazyLock<Vec<u8>> = LazyLock::new(|| request_for(None));
/// A request of a node for its serving certificate.
static OF_SERVER: LazyLock<Vec<u8>> = LazyLock::new(|| request_for(Some([10, 0, 0, 1])));

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

fn node(uid: &str, ready: Option<i64>) -> NodeView {
    let mut object = Node::default();
    object.metadata.name = "one".into();
    object.metadata.uid = uid.into();
    object.status.addresses = vec![NodeAddress {
        r#type: "InternalIP".into(),
        address: "10.0.0.1".into(),
    }];
    NodeView {
        ready: ready.map(at),
        ..NodeView::of(object)
    }
}

prop_compose! {
    fn tokens()(
        node in prop::option::of(prop::sample::select(vec!["one", "two"])),
        used_by in prop::option::of(prop::sample::select(vec!["this", "other"])),
        expires in prop::option::of(0_i64..7200),
    ) -> TokenView {
        TokenView {
            node: node.map(str::to_owned),
            used_by: used_by.map(str::to_owned),
            expires: expires.map(at),
            ..TokenView::of(Secret::default())
        }
    }
}

prop_compose! {
    fn nodes()(
        uid in prop::sample::select(vec!["own", "other"]),
        ready in prop::option::of(0_i64..7200),
    ) -> NodeView {
        node(uid, ready)
    }
}

prop_compose! {
    fn requests()(
        signer in prop::sample::select(SIGNERS.to_vec()),
        user in prop::sample::select(USERS.to_vec()),
        uid in prop::sample::select(vec!["", "own"]),
        form in prop::sample::select(vec![0, 1, 1, 2, 2]),
        decisions in prop::collection::btree_map(
            prop::sample::select(vec!["Approved", "Denied", "Failed"]), 0_i64..7200, 0..3,
        ),
        is_issued in any::<bool>(),
        expires in prop::option::of(0_i64..7200),
    ) -> RequestView {
        let mut object = CertificateSigningRequest::default();
        object.metadata.name = "one".into();
        object.metadata.uid = "this".into();
        object.metadata.creation_timestamp = at(0).into();
        object.spec.signer_name = signer.into();
        object.spec.username = user.into();
        object.spec.uid = uid.into();
        object.spec.groups = vec!["system:nodes".into(), JOINING_AGENTS.into()];
        let purpose = if form == 2 { "server auth" } else { "client auth" };
        object.spec.usages = vec!["digital signature".into(), purpose.into()];
        object.spec.request = match form {
            0 => b"none".to_vec(),
            1 => OF_NODE.clone(),
            _ => OF_SERVER.clone(),
        }.into();
        let conditions = decisions.iter().map(|(of, second)| condition(of, at(*second)));
        object.status.conditions = conditions.collect();
        let mut request = RequestView::of(object);
        request.is_issued = is_issued;
        request.expires = expires.filter(|_| is_issued).map(at);
        request
    }
}

prop_compose! {
    fn worlds()(
        request in requests(),
        token in prop::option::of(tokens()),
        node in prop::option::of(nodes()),
        is_taken in any::<bool>(),
        now in prop_oneof![0_i64..30, 0_i64..100_000],
    ) -> World {
        let is_joining = request.spec.username == USERS[1];
        World {
            token: token.filter(|_| is_joining).map(Arc::new),
            node: node.map(Arc::new),
            taken: is_taken.then(|| [10, 0, 0, 1].into()).into_iter().collect::<BTreeSet<_>>(),
            request: Arc::new(request),
            now: at(now),
        }
    }
}

/// Applies an action. Returns whether the request still exists.
fn apply(world: &mut World, action: Action) -> bool {
    let now = world.now;
    let request = Arc::make_mut(&mut world.request);
    match action {
        Action::Approve(_) => request.conditions.push(condition("Approved", now)),
        Action::Deny(_) => request.conditions.push(condition("Denied", now)),
        Action::Claim => {
            let token = world.token.as_mut().unwrap();
            Arc::make_mut(token).used_by = Some(request.meta.uid.clone());
        }
        Action::CreateNode(name) => {
            assert_eq!(name, "one");
            world.node = Some(Arc::new(node("new", None)));
        }
        Action::Sign(_) => request.is_issued = true,
        Action::Fail(_) => request.conditions.push(condition("Failed", now)),
        Action::RemoveToken => world.token = None,
        Action::Delete => return false,
    }
    true
}

proptest! {
    /// Each write is a plan of its own, so that a crash after any of them leaves a state that is among these: a token
    /// is claimed, the request approved, its Node created, its certificate issued, the token removed.
    #[test]
    fn a_request_settles_in_five_writes(mut world in worlds()) {
        for _ in 0..5 {
            let steps = plan(&world).steps;
            prop_assert!(steps.len() <= 1, "several writes in one plan: {steps:?}");
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
        let request = &world.request;
        let user = &*request.spec.username;
        for step in plan(&world).steps {
            match step.action {
                Action::Sign(_) | Action::Fail(_) | Action::CreateNode(_) => {
                    prop_assert!(request.is_approved() && !request.is_issued);
                    prop_assert!(request.spec.signer_name != SIGNERS[3]);
                }
                Action::Approve(approval) => {
                    prop_assert!(request.is_pending());
                    let (signer, who) = match approval {
                        Approval::OwnNodeClient => (SIGNERS[1], USERS[0]),
                        Approval::Token => (SIGNERS[1], USERS[1]),
                        Approval::NodeClient => (SIGNERS[1], USERS[2]),
                        Approval::Serving => (SIGNERS[2], USERS[0]),
                    };
                    prop_assert_eq!((&*request.spec.signer_name, user), (signer, who));
                }
                Action::Deny(_) | Action::Claim | Action::RemoveToken => {
                    prop_assert_eq!(user, USERS[1]);
                }
                Action::Delete => prop_assert!(world.now > at(0)),
            }
        }
    }

    /// A certificate by a token is one of the node that the token is for, and of one request only.
    #[test]
    fn a_token_is_used_for_its_node_once(world in worlds()) {
        let token = world.token.as_deref();
        for step in plan(&world).steps {
            match step.action {
                Action::Claim => {
                    let token = token.unwrap();
                    prop_assert_eq!((token.node.as_deref(), &token.used_by), (Some("one"), &None));
                    prop_assert!(token.expires.is_none_or(|time| time > world.now));
                }
                Action::Approve(Approval::Token) | Action::RemoveToken => {
                    prop_assert_eq!(token.unwrap().used_by.as_deref(), Some("this"));
                }
                _ => {}
            }
        }
    }

    /// A certificate from before the deletion of the Node is of no use to its node.
    #[test]
    fn a_node_gets_certificates_while_its_node_exists(world in worlds()) {
        let spec = &world.request.spec;
        let exists = world.node.as_ref().is_some_and(|node| {
            spec.uid.is_empty() || node.meta.uid == spec.uid
        });
        for step in plan(&world).steps {
            match step.action {
                Action::Sign(_) if spec.signer_name == SIGNERS[1] => {
                    prop_assert!(exists || spec.username != USERS[0]);
                }
                Action::CreateNode(_) => prop_assert!(spec.username != USERS[0]),
                Action::Approve(Approval::Serving) => {
                    prop_assert!(exists && world.taken.is_empty());
                }
                _ => {}
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
