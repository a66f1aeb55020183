//! Tables of changes of an object, with the errors that the registry returns for each: see [`super::cases`].

use serde_json::Value;
use setpoint_codec::{Object, kinds};
use setpoint_gateway::registry::{ObjectResponse, RequestContext, Target};
use setpoint_proto::ApiError;
use setpoint_store::contract::objects::NAMESPACE;

use super::cases::{Change, Creation, changed, differs};
use crate::registry::gateway::TestGateway;

/// An object to which changes are applied.
pub struct Base {
    pub resource: &'static str,
    pub object: Value,
}

impl Base {
    /// Checks creates, with each of the changes.
    pub async fn created(&self, cases: &[Creation]) {
        let gateway = TestGateway::start().await;
        let mut wrong = Vec::new();
        for (change, expected) in cases {
            let object = changed(&self.object, change);
            let outcome = self.create(&gateway, &object, true).await;
            wrong.extend(differs(change, outcome, expected));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Checks updates with the second change of an object stored with the first.
    pub async fn updated(&self, cases: &[Change]) {
        self.replaced("", cases).await;
    }

    async fn replaced(&self, part: &str, cases: &[Change]) {
        let mut wrong = Vec::new();
        for (before, change, expected) in cases {
            let gateway = TestGateway::start().await;
            let first = changed(&self.object, before);
            let mut stored = self.create(&gateway, &first, false).await.expect(before);
            if !part.is_empty() {
                let first = changed(&stored, before);
                stored = self
                    .update(&gateway, part, &first, false)
                    .await
                    .expect(before);
            }
            let outcome = self
                .update(&gateway, part, &changed(&stored, change), true)
                .await;
            wrong.extend(differs(&format!("{before} → {change}"), outcome, expected));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    /// Checks writes of `sent`, with each of the changes, to a subresource of the stored object. `{uid}` and
    /// `{revision}` in a change stand for those of the object.
    pub async fn written(&self, part: &str, sent: &Value, cases: &[Creation]) {
        let mut wrong = Vec::new();
        for (change, expected) in cases {
            let gateway = TestGateway::start().await;
            let stored = self.create(&gateway, &self.object, false).await.unwrap();
            let own = |field: &str| stored["metadata"][field].as_str().unwrap().to_owned();
            let change = change
                .replace("{uid}", &own("uid"))
                .replace("{revision}", &own("resourceVersion"));
            let outcome = self.write(&gateway, part, &changed(sent, &change)).await;
            wrong.extend(differs(&change, outcome, expected));
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    async fn write(
        &self,
        gateway: &TestGateway,
        part: &str,
        sent: &Value,
    ) -> Result<Value, ApiError> {
        let name = self.object["metadata"]["name"].as_str().unwrap();
        let (context, target) = (RequestContext::of_server(), self.target(name, part));
        let text = |field: &str| sent[field].as_str().unwrap();
        let kind = kinds().by_kind(text("apiVersion"), text("kind")).unwrap();
        let object = kind.from_json(sent.to_string().as_bytes())?;
        let response = match part {
            "binding" => gateway.registry.create(&context, &target, object).await,
            _ => gateway.registry.update(&context, &target, object).await,
        };
        encoded(response?)
    }

    async fn create(
        &self,
        gateway: &TestGateway,
        object: &Value,
        dry: bool,
    ) -> Result<Value, ApiError> {
        let (context, target) = (RequestContext::of_server().dry(dry), self.target("", ""));
        let object = decoded(&target, object)?;
        encoded(gateway.registry.create(&context, &target, object).await?)
    }

    async fn update(
        &self,
        gateway: &TestGateway,
        part: &str,
        object: &Value,
        dry: bool,
    ) -> Result<Value, ApiError> {
        let name = self.object["metadata"]["name"].as_str().unwrap();
        let (context, target) = (
            RequestContext::of_server().dry(dry),
            self.target(name, part),
        );
        let object = decoded(&target, object)?;
        encoded(gateway.registry.update(&context, &target, object).await?)
    }

    fn target(&self, name: &str, part: &str) -> Target {
        let kind = kinds().by_resource(self.resource).unwrap();
        let namespace = if kind.namespaced { NAMESPACE } else { "" };
        Target::new(kind, namespace, name, part).unwrap()
    }
}

fn decoded(target: &Target, object: &Value) -> Result<Box<dyn Object>, ApiError> {
    Ok(target.kind.from_json(object.to_string().as_bytes())?)
}

fn encoded(response: ObjectResponse) -> Result<Value, ApiError> {
    Ok(serde_json::from_slice(&response.into_object()?.to_json()).unwrap())
}
