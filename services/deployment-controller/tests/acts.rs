//! What the deployment-controller writes, to a gateway in this process.
#![expect(
    clippy::unwrap_used,
    reason = "a test may panic, and so may what it is made of"
)]

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Client, Receipt, Reconciler, Recorder, View, client};
use setpoint_deployment_controller::{
    Action, Deployment, Deployments, Report, Set, World, plan, status,
};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::{Key, Revision, Target, owner, template};
use setpoint_proto::apps::{self, ReplicaSet};
use setpoint_proto::core::{Container, Namespace};
use setpoint_proto::meta::LabelSelector;
use setpoint_proto::{ApiError, Reason};

const NAMESPACE: &str = "production";

/// A Deployment in a gateway, and the controller that acts on it.
struct Acts {
    gateway: Client,
    deployments: Deployments,
    deployment: apps::Deployment,
    _serving: InProcess,
}

impl Acts {
    async fn begin() -> Self {
        let serving = in_process::start().await;
        let settings = client::Settings {
            address: serving.url.clone(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "deployment-controller").unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = NAMESPACE.into();
        gateway.create(&namespace).await.unwrap();
        let deployment = gateway.create(&web()).await.unwrap().object;
        let deployments = gateway.informer::<Deployment>().reader();
        let sets = gateway.informer::<Set>().reader();
        let events = Recorder::new(gateway.clone(), "deployment-controller", "0");
        Self {
            deployments: Deployments {
                deployments,
                sets,
                events,
            },
            gateway,
            deployment,
            _serving: serving,
        }
    }

    fn world(&self) -> World {
        World {
            deployment: Arc::new(Deployment::of(self.deployment.clone())),
            sets: Vec::new(),
            namesake: None,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    async fn act(&self, action: &Action) -> Result<Receipt, ApiError> {
        let world = self.world();
        self.deployments.act(&self.gateway, &world, action).await
    }

    /// Creates the set of the template, and returns it with the write's receipt.
    async fn create(&self) -> (ReplicaSet, Receipt) {
        let steps = plan(&self.world()).steps;
        let receipt = self.act(&steps[0].action).await.unwrap();
        (self.set(steps[0].action.set()).await.unwrap(), receipt)
    }

    async fn set(&self, name: &str) -> Result<ReplicaSet, ApiError> {
        self.gateway.get(&Key::new(NAMESPACE, name)).await
    }
}

fn web() -> apps::Deployment {
    let mut deployment = apps::Deployment::default();
    let meta = &mut deployment.metadata;
    (meta.name, meta.namespace) = ("web".into(), NAMESPACE.into());
    meta.annotations.insert("note".into(), "handed on".into());
    let spec = &mut deployment.spec;
    spec.replicas = Some(3);
    spec.min_ready_seconds = 5;
    spec.template
        .metadata
        .labels
        .insert("app".into(), "web".into());
    spec.template.spec.containers.push(Container {
        name: "main".into(),
        image: "web".into(),
        ..Default::default()
    });
    spec.selector = Some(LabelSelector {
        match_labels: spec.template.metadata.labels.clone(),
        ..Default::default()
    });
    deployment
}

fn target(set: &ReplicaSet) -> Target {
    Target::of(&Set::of(set.clone()).meta)
}

fn is_ours(set: &ReplicaSet, deployment: &apps::Deployment) -> bool {
    owner::controller_of(&set.metadata).is_some_and(|owner| owner.uid == deployment.metadata.uid)
}

#[tokio::test]
async fn a_set_is_made_of_the_template_and_its_hash() {
    let acts = Acts::begin().await;
    let (set, receipt) = acts.create().await;
    assert_eq!(receipt.revision, Revision::of(&set.metadata));
    assert!(is_ours(&set, &acts.deployment));
    let hash = &set.metadata.labels[template::LABEL];
    assert_eq!(set.metadata.name, format!("web-{hash}"));
    let selector = set.spec.selector.as_ref().unwrap();
    assert_eq!(selector.match_labels[template::LABEL], *hash);
    assert_eq!(set.spec.template.metadata.labels, set.metadata.labels);
    assert_eq!(
        (set.spec.replicas, set.spec.min_ready_seconds),
        (Some(3), 5)
    );
    assert_eq!(set.metadata.annotations["note"], "handed on");
    let deployment = Deployment::of(acts.deployment.clone());
    assert!(Set::of(set.clone()).is_of_template(&deployment.packed));
    assert!(
        !set.metadata
            .annotations
            .contains_key("setpoint.dev/stored-template")
    );
}

/// Checks D4.
#[tokio::test]
async fn a_create_that_is_repeated_finds_its_set_and_no_other() {
    let acts = Acts::begin().await;
    let (set, first) = acts.create().await;
    assert_eq!(acts.create().await.1, first);
    let create = &plan(&acts.world()).steps[0].action;
    let key = Key::new(NAMESPACE, &set.metadata.name);
    let edit = serde_json::json!({"spec": {"template": {"spec": {"hostname": "edited"}}}});
    acts.gateway
        .patch::<ReplicaSet>(&key, "", edit)
        .await
        .unwrap();
    let refused = acts.act(create).await.unwrap_err();
    assert_eq!(refused.reason, Reason::AlreadyExists);
}

/// Checks D4: this gateway adds defaults to what was sent, as another might leave a field out.
#[tokio::test]
async fn a_template_that_is_stored_otherwise_is_noted_on_its_set() {
    let mut acts = Acts::begin().await;
    acts.deployment.spec.template = web().spec.template;
    let (set, receipt) = acts.create().await;
    assert_eq!(receipt.revision, Revision::of(&set.metadata));
    let sent = Deployment::of(acts.deployment.clone()).packed;
    let kept = Set::of(set.clone());
    assert_ne!(kept.template, sent);
    assert!(kept.is_of_template(&sent));
    let mut edited = set;
    edited.spec.template.spec.hostname = "edited".into();
    assert!(!Set::of(edited).is_of_template(&sent));
}

#[tokio::test]
async fn a_set_is_scaled_and_refreshed_whatever_its_controller_has_reported() {
    let acts = Acts::begin().await;
    let (set, _) = acts.create().await;
    let seen = target(&set);
    let annotations = |value: &str| [("size".to_owned(), value.to_owned())].into();
    let scale = |to| Action::Scale {
        set: seen.clone(),
        from: 3,
        to,
        annotations: annotations("7"),
    };
    acts.act(&scale(7)).await.unwrap();
    let refresh = Action::Refresh {
        set: seen.clone(),
        annotations: annotations("8"),
        min_ready_seconds: 9,
    };
    acts.act(&refresh).await.unwrap();
    let set = acts.set(&set.metadata.name).await.unwrap();
    assert_eq!(
        (set.spec.replicas, set.spec.min_ready_seconds),
        (Some(7), 9)
    );
    assert_eq!(set.metadata.annotations["size"], "8");
    assert_eq!(set.metadata.annotations["note"], "handed on");
    let another = Target {
        uid: "another".into(),
        ..seen.clone()
    };
    let scale_another = Action::Scale {
        set: another,
        from: 7,
        to: 1,
        annotations: annotations("1"),
    };
    let refused = acts.act(&scale_another).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Conflict);
}

/// Checks D12.
#[tokio::test]
async fn only_the_version_that_was_seen_is_adopted_released_and_deleted() {
    let acts = Acts::begin().await;
    let (owned, _) = acts.create().await;
    let name = owned.metadata.name.clone();
    acts.act(&Action::Release(target(&owned))).await.unwrap();
    let orphan = acts.set(&name).await.unwrap();
    assert!(!is_ours(&orphan, &acts.deployment));
    acts.act(&Action::Adopt(target(&orphan))).await.unwrap();
    let adopted = acts.set(&name).await.unwrap();
    assert!(is_ours(&adopted, &acts.deployment));
    for action in [
        Action::Release(target(&owned)),
        Action::Adopt(target(&orphan)),
        Action::Delete(target(&owned)),
    ] {
        let refused = acts.act(&action).await.unwrap_err();
        assert_eq!(refused.reason, Reason::Conflict, "{action:?}");
    }
    acts.act(&Action::Delete(target(&adopted))).await.unwrap();
    assert_eq!(acts.set(&name).await.unwrap_err().reason, Reason::NotFound);
}

/// Checks D12.
#[tokio::test]
async fn a_deployment_that_is_gone_adopts_nothing() {
    let acts = Acts::begin().await;
    let (set, _) = acts.create().await;
    acts.act(&Action::Release(target(&set))).await.unwrap();
    let orphan = acts.set(&set.metadata.name).await.unwrap();
    let key = Key::new(NAMESPACE, "web");
    acts.gateway
        .delete::<apps::Deployment>(&key, Default::default(), None)
        .await
        .unwrap();
    acts.gateway.create(&web()).await.unwrap();
    let refused = acts.act(&Action::Adopt(target(&orphan))).await;
    assert_eq!(refused.unwrap_err().reason, Reason::Conflict);
}

/// Checks D7.
#[tokio::test]
async fn status_and_revision_are_written_together() {
    let acts = Acts::begin().await;
    let world = acts.world();
    let told = status(&world, &Default::default()).unwrap();
    let told = Report {
        revision: Some(4),
        ..told
    };
    acts.deployments
        .update_status(&acts.gateway, &world, told.clone())
        .await
        .unwrap();
    let written: apps::Deployment = acts.gateway.get(&Key::new(NAMESPACE, "web")).await.unwrap();
    assert_eq!(written.status, told.status);
    let annotations = &written.metadata.annotations;
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "4");
    assert_eq!(annotations["note"], "handed on");
    assert_eq!(
        written.metadata.generation,
        acts.deployment.metadata.generation
    );
    let stale = acts
        .deployments
        .update_status(&acts.gateway, &world, told)
        .await;
    assert_eq!(stale.unwrap_err().reason, Reason::Conflict);
}
