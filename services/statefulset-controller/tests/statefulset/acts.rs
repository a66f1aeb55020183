//! Tests of the writes of the statefulset-controller, against a gateway in this process.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use setpoint_controller::client::ListOptions;
use setpoint_controller::{Claim, Client, Outcome, Reconciler, Recorder, View, client};
use setpoint_gateway::in_process::{self, InProcess};
use setpoint_model::owner::Reference;
use setpoint_model::{Key, Meta, Target};
use setpoint_proto::apps::{ControllerRevision, StatefulSet};
use setpoint_proto::core::{
    Container, Namespace, PersistentVolumeClaim, Pod, ServiceAccount, VolumeResourceRequirements,
};
use setpoint_proto::meta::{LabelSelector, OwnerReference, Quantity};
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_proto::setpoint::{PatchRequest, patch_request};
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_statefulset_controller::{
    Action, ClaimView, StatefulSetView, StatefulSets, World, plan, status,
};
use setpoint_workload::history::Write;
use setpoint_workload::{PodView, RevisionView};

const NAMESPACE: &str = "production";

/// A StatefulSet in a gateway, and the reconciler that acts on it.
struct Fixture {
    gateway: Client,
    sets: StatefulSets,
    _gateway: InProcess,
}

impl Fixture {
    async fn start() -> Self {
        let server = in_process::start().await;
        let settings = client::Settings {
            address: server.url.clone(),
            ..Default::default()
        };
        let gateway = Client::connect(&settings, "statefulset-controller").unwrap();
        let mut namespace = Namespace::default();
        namespace.metadata.name = NAMESPACE.into();
        gateway.create(&namespace).await.unwrap();
        let mut account = ServiceAccount::default();
        account.metadata.namespace = NAMESPACE.into();
        account.metadata.name = "default".into();
        gateway.create(&account).await.unwrap();
        gateway.create(&web()).await.unwrap();
        let sets = StatefulSets {
            sets: gateway.informer::<StatefulSetView>().reader(),
            pods: gateway.informer::<PodView>().reader(),
            revisions: gateway.informer::<RevisionView>().reader(),
            claims: gateway.informer::<ClaimView>().reader(),
            events: Recorder::new(gateway.clone(), "statefulset-controller", "0"),
        };
        Self {
            sets,
            gateway,
            _gateway: server,
        }
    }

    async fn list<V: View>(&self) -> Vec<Arc<V>> {
        let options = ListOptions::default();
        let listed = self.gateway.list::<V::Object>(&options).await.unwrap();
        listed.items.into_iter().map(V::of).map(Arc::new).collect()
    }

    async fn set(&self) -> StatefulSet {
        self.get("web").await
    }

    async fn get<T: Resource>(&self, name: &str) -> T {
        let key = Key::new(NAMESPACE, name);
        self.gateway.get(&key).await.unwrap()
    }

    async fn target<T: Resource>(&self, name: &str) -> Target {
        Target::of(&Meta::of(self.get::<T>(name).await.meta()))
    }

    /// Returns what the caches would show.
    async fn world(&self) -> World {
        let set = StatefulSetView::of(self.set().await);
        let claims = self.list::<ClaimView>().await.into_iter();
        World {
            revision_name: set.snapshot.name(&set.meta, 0, |_| false),
            pods: self.list().await,
            revisions: self.list().await,
            claims: claims
                .map(|claim| (claim.meta.key.name.clone(), claim))
                .collect::<BTreeMap<_, _>>(),
            set: set.into(),
            now: Timestamp::now(),
        }
    }

    async fn act(&self, action: Action) -> Result<(), ApiError> {
        let world = self.world().await;
        let result = self.sets.act(&self.gateway, &world, &action).await;
        self.sets.record(&world, &action, &result);
        result.map(drop)
    }

    /// Plans, acts and writes the status once.
    async fn reconcile(&self) {
        let world = self.world().await;
        let plan = plan(&world);
        for step in &plan.steps {
            self.act(step.action.clone()).await.unwrap();
        }
        if let Some(status) = status(&world, &Outcome::of(plan)) {
            let written = self.sets.update_status(&self.gateway, &world, status);
            written.await.unwrap();
        }
    }

    /// Makes a Pod running and ready.
    async fn run(&self, name: &str) {
        let patch = json!({"status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        let key = Key::new(NAMESPACE, name);
        let written = self.gateway.patch::<Pod>(&key, "status", patch);
        written.await.unwrap();
    }

    /// Sends the data of a revision, as `kubectl rollout undo` does.
    async fn restore(&self, revision: &ControllerRevision) {
        let request = PatchRequest {
            resource: StatefulSet::RESOURCE.into(),
            namespace: NAMESPACE.into(),
            name: "web".into(),
            r#type: patch_request::Type::Strategic.into(),
            patch: revision.data.raw.clone(),
            field_manager: "kubectl-rollout".into(),
            ..Default::default()
        };
        let mut client = ObjectsClient::new(self.gateway.channel());
        client.patch(request).await.unwrap();
    }

    async fn image(&self, image: &str) {
        let mut set = self.set().await;
        set.spec.template.spec.containers[0].image = image.into();
        self.gateway.update(&set).await.unwrap();
    }
}

fn web() -> StatefulSet {
    let mut set = StatefulSet::default();
    (set.metadata.name, set.metadata.namespace) = ("web".into(), NAMESPACE.into());
    let change = "kubernetes.io/change-cause".to_owned();
    set.metadata.annotations.insert(change, "first".into());
    set.spec.replicas = Some(1);
    set.spec.service_name = "headless".into();
    let template = &mut set.spec.template;
    template.metadata.labels.insert("app".into(), "web".into());
    template.spec.containers.push(Container {
        name: "main".into(),
        image: "a<b".into(),
        ..Default::default()
    });
    set.spec.selector = Some(LabelSelector {
        match_labels: template.metadata.labels.clone(),
        ..Default::default()
    });
    let mut claim = PersistentVolumeClaim::default();
    claim.metadata.name = "data".into();
    claim.spec.access_modes = vec!["ReadWriteOnce".into()];
    let storage = [("storage".to_owned(), Quantity::new("1Gi"))];
    claim.spec.resources = VolumeResourceRequirements {
        requests: storage.into(),
        ..Default::default()
    };
    set.spec.volume_claim_templates.push(claim);
    set
}

#[tokio::test]
async fn reconciles_create_the_revision_the_claim_and_the_pod() {
    let fixture = Fixture::start().await;
    for _ in 0..3 {
        fixture.reconcile().await;
    }
    let revisions: Vec<Arc<RevisionView>> = fixture.list().await;
    assert_eq!((revisions.len(), revisions[0].number), (1, 1));
    assert_eq!(
        revisions[0].meta.annotations["kubernetes.io/change-cause"],
        "first"
    );
    assert_eq!(revisions[0].meta.labels["app"], "web");
    assert!(revisions[0].name().ends_with(revisions[0].hash()));
    let claim: PersistentVolumeClaim = fixture.get("data-web-0").await;
    assert_eq!(claim.metadata.labels["app"], "web");
    assert_eq!(claim.spec.resources.requests.len(), 1);
    let pod: Pod = fixture.get("web-0").await;
    assert_eq!(
        pod.metadata.labels["controller-revision-hash"],
        revisions[0].name()
    );
    assert_eq!(
        (&*pod.spec.hostname, &*pod.spec.subdomain),
        ("web-0", "headless")
    );
    assert_eq!(pod.spec.volumes[0].name, "data");
    fixture.run("web-0").await;
    fixture.reconcile().await;
    let status = fixture.set().await.status;
    assert_eq!((status.ready_replicas, status.available_replicas), (1, 1));
    assert_eq!(status.current_revision, revisions[0].name());
    assert!(plan(&fixture.world().await).is_empty());
}

#[tokio::test]
async fn the_data_of_a_revision_restores_its_template_and_is_kept() {
    let fixture = Fixture::start().await;
    fixture.reconcile().await;
    let first: Vec<Arc<RevisionView>> = fixture.list().await;
    fixture.image("b").await;
    fixture.reconcile().await;
    let revision: ControllerRevision = fixture.get(first[0].name()).await;
    let data: serde_json::Value = serde_json::from_slice(&revision.data.raw).unwrap();
    assert_eq!(
        data.pointer("/spec/template/$patch"),
        Some(&json!("replace"))
    );
    fixture.restore(&revision).await;
    let restored = fixture.set().await.spec.template;
    assert_eq!(restored.spec.containers[0].image, "a<b");
    let world = fixture.world().await;
    let steps = plan(&world).steps;
    let actions: Vec<_> = steps.iter().map(|step| &step.action).collect();
    assert!(
        matches!(
            actions[..],
            [Action::Revision(Write::Renumber { number: 3, .. })]
        ),
        "{actions:?}"
    );
    fixture.reconcile().await;
    let restored: ControllerRevision = fixture.get(first[0].name()).await;
    assert_eq!((restored.revision, restored.data), (3, revision.data));
}

#[tokio::test]
async fn a_repeated_create_returns_the_object_unless_it_has_another_owner() {
    let fixture = Fixture::start().await;
    let name = fixture.world().await.revision_name;
    let revision = Action::Revision(Write::Create { name, number: 1 });
    fixture.act(revision.clone()).await.unwrap();
    fixture.act(revision.clone()).await.unwrap();
    let revision = fixture.world().await.revision_name.name;
    let pod = Action::Create {
        name: "web-0".into(),
        ordinal: 0,
        revision: revision.clone(),
    };
    fixture.act(pod.clone()).await.unwrap();
    fixture.act(pod.clone()).await.unwrap();
    let owned = fixture.target::<Pod>("web-0").await;
    fixture.act(Action::Release(owned)).await.unwrap();
    assert_eq!(
        fixture.act(pod).await.unwrap_err().reason,
        Reason::AlreadyExists
    );
    let orphan = fixture.target::<Pod>("web-0").await;
    fixture.act(Action::Adopt(orphan.clone())).await.unwrap();
    let stale = fixture.act(Action::Delete(orphan)).await;
    assert_eq!(stale.unwrap_err().reason, Reason::Conflict);
    let owned = fixture.target::<ControllerRevision>(&revision).await;
    fixture
        .act(Action::Revision(Write::Claim(Claim::Release(owned))))
        .await
        .unwrap();
    let orphan = fixture.target::<ControllerRevision>(&revision).await;
    fixture
        .act(Action::Revision(Write::Claim(Claim::Adopt(orphan))))
        .await
        .unwrap();
    let owned = fixture.target::<ControllerRevision>(&revision).await;
    fixture
        .act(Action::Revision(Write::Delete(owned)))
        .await
        .unwrap();
    assert!(fixture.list::<RevisionView>().await.is_empty());
}

#[tokio::test]
async fn labels_are_repaired_and_owners_of_claims_replaced() {
    let fixture = Fixture::start().await;
    for _ in 0..3 {
        fixture.reconcile().await;
    }
    let key = Key::new(NAMESPACE, "web-0");
    let patch = json!({"metadata": {"labels": {"statefulset.kubernetes.io/pod-name": null}}});
    fixture.gateway.patch::<Pod>(&key, "", patch).await.unwrap();
    let pod = fixture.target::<Pod>("web-0").await;
    fixture
        .act(Action::Repair { pod, ordinal: 0 })
        .await
        .unwrap();
    let pod: Pod = fixture.get("web-0").await;
    assert_eq!(
        pod.metadata.labels["statefulset.kubernetes.io/pod-name"],
        "web-0"
    );

    let owner = OwnerReference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: "web-0".into(),
        uid: pod.metadata.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let claim = fixture.target::<PersistentVolumeClaim>("data-web-0").await;
    for owners in [vec![owner], Vec::new()] {
        let action = Action::OwnClaim {
            claim: fixture.target::<PersistentVolumeClaim>("data-web-0").await,
            ordinal: 0,
            owners: owners.iter().cloned().map(Reference).collect(),
        };
        fixture.act(action).await.unwrap();
        let claim: PersistentVolumeClaim = fixture.get("data-web-0").await;
        assert_eq!(claim.metadata.owner_references, owners);
    }
    let action = Action::OwnClaim {
        claim,
        ordinal: 0,
        owners: Vec::new(),
    };
    assert_eq!(
        fixture.act(action).await.unwrap_err().reason,
        Reason::Conflict
    );
}

#[tokio::test]
async fn the_gateway_keeps_and_validates_max_unavailable() {
    let fixture = Fixture::start().await;
    let key = Key::new(NAMESPACE, "web");
    let max = |max: serde_json::Value| {
        let patch = json!({"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": max}}}});
        fixture.gateway.patch::<StatefulSet>(&key, "", patch)
    };
    let stored = max(json!("50%")).await.unwrap().object().unwrap();
    let rolling = stored.spec.update_strategy.rolling_update.unwrap();
    assert_eq!(rolling.max_unavailable.unwrap().as_str(), Some("50%"));
    for invalid in [json!(0), json!("0%"), json!("101%"), json!(-1), json!("x")] {
        let refused = max(invalid.clone()).await.unwrap_err();
        assert_eq!(refused.reason, Reason::Invalid, "{invalid}");
    }
}
