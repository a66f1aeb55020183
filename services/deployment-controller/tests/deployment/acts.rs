//! Tests of the writes of the deployment-controller, against a gateway in this process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::sync::Arc;

use jiff::Timestamp;
use setpoint_controller::{Client, Receipt, Reconciler, Recorder, View, client};
use setpoint_deployment_controller::{
    Action, DeploymentView, Deployments, ReplicaSetView, World, plan, status,
};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::{Key, Revision, Target, owner, template};
use setpoint_proto::apps::{self, ReplicaSet};
use setpoint_proto::core::{Container, Namespace};
use setpoint_proto::meta::LabelSelector;
use setpoint_proto::{ApiError, Reason};

const NAMESPACE: &str = "production";

/// A Deployment in a gateway, and the reconciler that fixture on it.
struct Fixture {
    gateway: Client,
    deployments: Deployments,
    deployment: apps::Deployment,
    _gateway: InProcess,
}

impl Fixture {
    async fn start() -> Self {
        let server = in_process::start().await;
        let settings = client::Settings {
            address: server.url.clone(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "deployment-controller").unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = NAMESPACE.into();
        gateway.create(&namespace).await.unwrap();
        let deployment = gateway.create(&web()).await.unwrap().object().unwrap();
        let deployments = gateway.informer::<DeploymentView>().reader();
        let sets = gateway.informer::<ReplicaSetView>().reader();
        let events = Recorder::new(gateway.clone(), "deployment-controller", "0");
        Self {
            deployments: Deployments {
                deployments,
                sets,
                events,
            },
            gateway,
            deployment,
            _gateway: server,
        }
    }

    fn world(&self) -> World {
        World {
            deployment: Arc::new(DeploymentView::of(self.deployment.clone())),
            sets: Vec::new(),
            name_conflict: None,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    async fn act(&self, action: &Action) -> Result<Receipt, ApiError> {
        let world = self.world();
        self.deployments.act(&self.gateway, &world, action).await
    }

    /// Creates the set of the template; returns it with the receipt of the write.
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
    meta.annotations.insert("note".into(), "copied".into());
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
    Target::of(&ReplicaSetView::of(set.clone()).meta)
}

fn is_ours(set: &ReplicaSet, deployment: &apps::Deployment) -> bool {
    owner::controller_of(&set.metadata).is_some_and(|owner| owner.uid == deployment.metadata.uid)
}

#[tokio::test]
async fn create_makes_a_set_from_the_template_and_its_hash() {
    let fixture = Fixture::start().await;
    let (set, receipt) = fixture.create().await;
    assert_eq!(receipt.revision, Revision::of(&set.metadata));
    assert!(is_ours(&set, &fixture.deployment));
    let hash = &set.metadata.labels[template::LABEL];
    assert_eq!(set.metadata.name, format!("web-{hash}"));
    let selector = set.spec.selector.as_ref().unwrap();
    assert_eq!(selector.match_labels[template::LABEL], *hash);
    assert_eq!(set.spec.template.metadata.labels, set.metadata.labels);
    assert_eq!(
        (set.spec.replicas, set.spec.min_ready_seconds),
        (Some(3), 5)
    );
    assert_eq!(set.metadata.annotations["note"], "copied");
    let deployment = DeploymentView::of(fixture.deployment.clone());
    assert!(ReplicaSetView::of(set.clone()).is_of_template(&deployment.packed));
    assert!(
        !set.metadata
            .annotations
            .contains_key("setpoint.dev/stored-template")
    );
}

/// Checks D4.
#[tokio::test]
async fn a_repeated_create_returns_the_set_unless_its_template_was_edited() {
    let fixture = Fixture::start().await;
    let (set, first) = fixture.create().await;
    assert_eq!(fixture.create().await.1, first);
    let create = &plan(&fixture.world()).steps[0].action;
    let key = Key::new(NAMESPACE, &set.metadata.name);
    let edit = serde_json::json!({"spec": {"template": {"spec": {"hostname": "edited"}}}});
    fixture
        .gateway
        .patch::<ReplicaSet>(&key, "", edit)
        .await
        .unwrap();
    let refused = fixture.act(create).await.unwrap_err();
    assert_eq!(refused.reason, Reason::AlreadyExists);
}

/// Checks D4. Here the gateway adds defaults to the template; another one might drop a field.
#[tokio::test]
async fn create_annotates_a_set_whose_template_was_changed_by_the_gateway() {
    let mut fixture = Fixture::start().await;
    fixture.deployment.spec.template = web().spec.template;
    let (set, receipt) = fixture.create().await;
    assert_eq!(receipt.revision, Revision::of(&set.metadata));
    let sent = DeploymentView::of(fixture.deployment.clone()).packed;
    let stored = ReplicaSetView::of(set.clone());
    assert_ne!(stored.template, sent);
    assert!(stored.is_of_template(&sent));
    let mut edited = set;
    edited.spec.template.spec.hostname = "edited".into();
    assert!(!ReplicaSetView::of(edited).is_of_template(&sent));
}

#[tokio::test]
async fn scale_and_refresh_patch_a_set_of_the_same_uid_at_any_resource_version() {
    let fixture = Fixture::start().await;
    let (set, _) = fixture.create().await;
    let seen = target(&set);
    let annotations = |value: &str| [("size".to_owned(), value.to_owned())].into();
    let scale = |to| Action::Scale {
        set: seen.clone(),
        from: 3,
        to,
        annotations: annotations("7"),
    };
    fixture.act(&scale(7)).await.unwrap();
    let refresh = Action::Refresh {
        set: seen.clone(),
        annotations: annotations("8"),
        min_ready_seconds: 9,
    };
    fixture.act(&refresh).await.unwrap();
    let set = fixture.set(&set.metadata.name).await.unwrap();
    assert_eq!(
        (set.spec.replicas, set.spec.min_ready_seconds),
        (Some(7), 9)
    );
    assert_eq!(set.metadata.annotations["size"], "8");
    assert_eq!(set.metadata.annotations["note"], "copied");
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
    let refused = fixture.act(&scale_another).await.unwrap_err();
    assert_eq!(refused.reason, Reason::Conflict);
}

/// Checks D12.
#[tokio::test]
async fn adopt_release_and_delete_require_the_observed_version() {
    let fixture = Fixture::start().await;
    let (owned, _) = fixture.create().await;
    let name = owned.metadata.name.clone();
    fixture.act(&Action::Release(target(&owned))).await.unwrap();
    let orphan = fixture.set(&name).await.unwrap();
    assert!(!is_ours(&orphan, &fixture.deployment));
    fixture.act(&Action::Adopt(target(&orphan))).await.unwrap();
    let adopted = fixture.set(&name).await.unwrap();
    assert!(is_ours(&adopted, &fixture.deployment));
    for action in [
        Action::Release(target(&owned)),
        Action::Adopt(target(&orphan)),
        Action::Delete(target(&owned)),
    ] {
        let refused = fixture.act(&action).await.unwrap_err();
        assert_eq!(refused.reason, Reason::Conflict, "{action:?}");
    }
    fixture
        .act(&Action::Delete(target(&adopted)))
        .await
        .unwrap();
    assert_eq!(
        fixture.set(&name).await.unwrap_err().reason,
        Reason::NotFound
    );
}

/// Checks D12.
#[tokio::test]
async fn adopt_fails_if_the_deployment_was_replaced_by_another_of_its_name() {
    let fixture = Fixture::start().await;
    let (set, _) = fixture.create().await;
    fixture.act(&Action::Release(target(&set))).await.unwrap();
    let orphan = fixture.set(&set.metadata.name).await.unwrap();
    let key = Key::new(NAMESPACE, "web");
    fixture
        .gateway
        .delete::<apps::Deployment>(&key, Default::default(), None)
        .await
        .unwrap();
    fixture.gateway.create(&web()).await.unwrap();
    let refused = fixture.act(&Action::Adopt(target(&orphan))).await;
    assert_eq!(refused.unwrap_err().reason, Reason::Conflict);
}

/// Checks D7.
#[tokio::test]
async fn update_status_writes_status_and_revision_annotation() {
    let fixture = Fixture::start().await;
    let (mut set, _) = fixture.create().await;
    let revision = ("deployment.kubernetes.io/revision".into(), "4".into());
    set.metadata.annotations.extend([revision]);
    let mut world = fixture.world();
    world.sets.push(Arc::new(ReplicaSetView::of(set)));
    let status = status(&world, &Default::default()).unwrap();
    fixture
        .deployments
        .update_status(&fixture.gateway, &world, status.clone())
        .await
        .unwrap();
    let written: apps::Deployment = fixture
        .gateway
        .get(&Key::new(NAMESPACE, "web"))
        .await
        .unwrap();
    assert_eq!(written.status, status);
    let annotations = &written.metadata.annotations;
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "4");
    assert_eq!(annotations["note"], "copied");
    assert_eq!(
        written.metadata.generation,
        fixture.deployment.metadata.generation
    );
    let stale = fixture
        .deployments
        .update_status(&fixture.gateway, &world, status)
        .await;
    assert_eq!(stale.unwrap_err().reason, Reason::Conflict);
}
