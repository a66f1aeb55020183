//! Tests of the order of a write, which is the same for all verbs.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::ready;
use parking_lot::Mutex;
use serde_json::{Value, json};
use setpoint_codec::{Kind, Object, kind_of};
use setpoint_kinds::Target;
use setpoint_proto::admissionregistration::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};
use setpoint_proto::core::{ConfigMap, Namespace};
use setpoint_proto::setpoint::patch_request::Type;
use setpoint_proto::{ApiError, Reason, Resource};
use setpoint_store::Memory;
use setpoint_store::cache::{AtLeast, Cache, Settings};

use crate::admission::{Attributes, Operation, Plugin, Reader, Reserving, Step};
use crate::registry::{Registry, RequestContext};
use crate::verbs::patch::Patch;

/// A plugin that records its steps. It removes the label that an old object has from the mutating policy, and refuses
/// objects with the key `refuse`.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<&'static str>>>);

fn data(object: &dyn Object) -> Option<&ConfigMap> {
    object.downcast_ref::<ConfigMap>()
}

impl Plugin for Recorder {
    fn admit<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        _reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        data(object)?;
        self.0.lock().push("admit");
        if request.operation == Operation::Update {
            object.meta_mut().labels.remove("mutated");
        }
        None
    }

    fn check<'a>(&'a self, request: Attributes<'a>, _reader: &'a dyn Reader) -> Option<Step<'a>> {
        let map = data(request.object?)?;
        self.0
            .lock()
            .push(match map.metadata.labels.contains_key("mutated") {
                true => "check what was mutated",
                false => "check",
            });
        let refused = map.data.contains_key("refuse");
        let error = || Err(ApiError::new(Reason::Forbidden, "refused by a plugin"));
        refused.then(|| ready(error()).boxed())
    }

    fn reserve<'a>(
        &'a self,
        _request: Attributes<'a>,
        object: &'a mut dyn Object,
        _at: AtLeast,
        _reader: &'a dyn Reader,
    ) -> Option<Reserving<'a>> {
        data(object)?;
        self.0.lock().push("reserve");
        None
    }
}

/// A verb that changes or creates an object.
#[derive(Clone, Copy, Debug)]
enum Write {
    Create,
    Update,
    Patch(Type),
    ApplyNew,
}

const WRITES: [Write; 7] = [
    Write::Create,
    Write::Update,
    Write::Patch(Type::Json),
    Write::Patch(Type::Merge),
    Write::Patch(Type::Strategic),
    Write::Patch(Type::Apply),
    Write::ApplyNew,
];

impl Write {
    /// Returns the steps of a write: the common ones, and before them those of the admission, which is repeated for a
    /// new object that a policy has changed.
    fn expected(self, steps: &[&'static str]) -> Vec<&'static str> {
        let admissions = match self {
            Self::Create | Self::ApplyNew => 2,
            Self::Update | Self::Patch(_) => 1,
        };
        [&vec!["admit"; admissions], steps].concat()
    }
}

struct Gateway {
    registry: Registry,
    recorder: Recorder,
}

impl Gateway {
    async fn start() -> Self {
        let store = Arc::new(Memory::default());
        let cache = Cache::start(store.clone(), Settings::default());
        cache.synced().await;
        let recorder = Recorder::default();
        let registry = Registry::new(store, cache).with_plugin(Box::new(recorder.clone()));
        let gateway = Self { registry, recorder };
        gateway.create::<Namespace>("shop", json!({})).await;
        gateway.create_policies().await;
        gateway
            .create::<ConfigMap>("old", json!({"data": {"a": "1"}}))
            .await;
        gateway
    }

    async fn create<T: Resource>(&self, name: &str, fields: Value) {
        let kind = kind_of::<T>();
        let object = object(kind, name, fields);
        let context = RequestContext::of_server().by("test");
        let created = self
            .registry
            .create(&context, &target(kind, ""), object)
            .await;
        created.unwrap();
    }

    /// A policy sets a label, and another one denies objects with the key `deny`.
    async fn create_policies(&self) {
        let rules = json!({"resourceRules": [{
            "operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        }]});
        let expression = r#"Object{metadata: Object.metadata{labels: {"mutated": "yes"}}}"#;
        let mutation = json!({
            "patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression},
        });
        let spec = json!({
            "matchConstraints": rules, "mutations": [mutation], "reinvocationPolicy": "Never",
        });
        self.create::<MutatingAdmissionPolicy>("p", json!({ "spec": spec }))
            .await;
        let spec = json!({"policyName": "p"});
        self.create::<MutatingAdmissionPolicyBinding>("p", json!({ "spec": spec }))
            .await;
        let validation = json!({"expression": "!('deny' in object.data)"});
        let spec = json!({"matchConstraints": rules, "validations": [validation]});
        self.create::<ValidatingAdmissionPolicy>("p", json!({ "spec": spec }))
            .await;
        let spec = json!({"policyName": "p", "validationActions": ["Deny"]});
        self.create::<ValidatingAdmissionPolicyBinding>("p", json!({ "spec": spec }))
            .await;
    }

    /// Writes a key, and returns the steps that the plugin has seen, and the error.
    async fn steps(&self, write: Write, key: &str) -> (Vec<&'static str>, Option<ApiError>) {
        let (context, kind) = (
            RequestContext::of_server().by("test"),
            kind_of::<ConfigMap>(),
        );
        let old = target(kind, "old");
        // The cache must not lag, or a write that is refused would be repeated with the stored object.
        let read = self.registry.get(&context, &old, AtLeast::Newest).await;
        read.unwrap();
        self.recorder.0.lock().clear();
        let fields = json!({"data": {key: "1"}});
        let written = match write {
            Write::Create => {
                let created = object(kind, "new", fields);
                self.registry
                    .create(&context, &target(kind, ""), created)
                    .await
            }
            Write::Update => {
                let updated = object(kind, "old", fields);
                self.registry.update(&context, &old, updated).await
            }
            Write::Patch(r#type) => {
                let patch = patch(r#type, "old", key, fields);
                self.registry.patch(&context, &old, &patch).await
            }
            Write::ApplyNew => {
                let patch = patch(Type::Apply, "applied", key, fields);
                let applied = target(kind, "applied");
                self.registry.patch(&context, &applied, &patch).await
            }
        };
        let steps = std::mem::take(&mut *self.recorder.0.lock());
        (steps, written.err())
    }
}

fn target(kind: &'static Kind, name: &str) -> Target {
    let namespace = if kind.namespaced { "shop" } else { "" };
    Target::new(kind, namespace, name, "").unwrap()
}

fn document(kind: &Kind, name: &str, mut fields: Value) -> Value {
    fields["apiVersion"] = kind.api_version().into();
    fields["kind"] = kind.kind.clone().into();
    fields["metadata"] = json!({ "name": name });
    fields
}

fn object(kind: &'static Kind, name: &str, fields: Value) -> Box<dyn Object> {
    let text = document(kind, name, fields).to_string();
    kind.from_json(text.as_bytes()).unwrap()
}

fn patch(r#type: Type, name: &str, key: &str, fields: Value) -> Patch {
    Patch {
        r#type,
        body: match r#type {
            Type::Json => json!([{"op": "add", "path": format!("/data/{key}"), "value": "1"}]),
            Type::Apply => document(kind_of::<ConfigMap>(), name, fields),
            _ => fields,
        },
        bytes: 0,
        force: true,
        check: |_, _| Ok(Vec::new()),
    }
}

#[tokio::test]
async fn every_verb_has_the_same_order_of_steps() {
    const CHECK: &str = "check what was mutated";
    let gateway = Gateway::start().await;
    for write in WRITES {
        let (steps, error) = gateway.steps(write, "not valid").await;
        assert_eq!(error.unwrap().reason, Reason::Invalid, "{write:?}");
        assert_eq!(steps, write.expected(&[]), "{write:?}: an invalid object");
        let (steps, error) = gateway.steps(write, "refuse").await;
        assert_eq!(error.unwrap().message, "refused by a plugin", "{write:?}");
        let expected = write.expected(&[CHECK]);
        assert_eq!(steps, expected, "{write:?}: one that is refused");
        let (steps, error) = gateway.steps(write, "deny").await;
        let message = error.unwrap().message;
        assert!(message.contains("ValidatingAdmissionPolicy"), "{write:?}");
        assert_eq!(steps, expected, "{write:?}: one that is denied");
        let (steps, error) = gateway.steps(write, "valid").await;
        assert_eq!(error, None, "{write:?}");
        let expected = write.expected(&[CHECK, "reserve"]);
        assert_eq!(steps, expected, "{write:?}: a valid one");
    }
}
