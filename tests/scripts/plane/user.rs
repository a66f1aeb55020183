//! Writes and reads of the user of a script, and what a kubelet reports on command.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use setpoint_codec::Kind;
use setpoint_proto::Any;
use setpoint_proto::setpoint::{
    CreateRequest, DeleteRequest, GetRequest, ListRequest, Object, PatchRequest, UpdateRequest,
    patch_request,
};
use tonic::Status;

use super::{Lines, Plane, QUIET, USER};
use crate::command::Fields;
use crate::objects::{self, kind, split};
use crate::{kubelet, print};

impl Plane {
    pub(super) async fn node(&mut self, name: &str, fields: &Fields) -> Result<(), String> {
        let kind = kind("node")?;
        let node = objects::object(kind, name, fields);
        let status = json!({ "status": node["status"] });
        self.create("node", name, fields).await?;
        self.patch(kubelet::NAME, kind, name, "status", status)
            .await
    }

    pub(super) async fn create(
        &mut self,
        name_of_kind: &str,
        name: &str,
        fields: &Fields,
    ) -> Result<(), String> {
        let kind = kind(name_of_kind)?;
        let object = objects::object(kind, name, fields);
        let (namespace, _) = split(kind, name);
        let request = CreateRequest {
            resource: kind.resource(),
            namespace: namespace.to_owned(),
            object: Some(encode(kind, &object)?),
            field_manager: USER.into(),
            ..CreateRequest::default()
        };
        let mut user = self.user.clone();
        self.call(async move { user.create(request).await }).await;
        Ok(())
    }

    pub(super) async fn apply(
        &mut self,
        manager: &str,
        kind: &str,
        name: &str,
        fields: &Fields,
    ) -> Result<(), String> {
        let kind = objects::kind(kind)?;
        let object = objects::object(kind, name, fields);
        let request = patch_of(kind, name, patch_request::Type::Apply, &object, manager);
        let mut user = self.user.clone();
        self.call(async move { user.patch(request).await }).await;
        Ok(())
    }

    pub(super) async fn patch(
        &mut self,
        manager: &str,
        kind: &Kind,
        name: &str,
        subresource: &str,
        patch: Value,
    ) -> Result<(), String> {
        let request = PatchRequest {
            subresource: subresource.to_owned(),
            ..patch_of(kind, name, patch_request::Type::Strategic, &patch, manager)
        };
        let mut user = self.user.clone();
        self.call(async move { user.patch(request).await }).await;
        Ok(())
    }

    pub(super) async fn remember(&mut self, kind: String, name: String) -> Result<(), String> {
        let object = self.read(&kind, &name).await?;
        self.remembered.insert((kind, name), object);
        Ok(())
    }

    pub(super) async fn replace(
        &mut self,
        kind: String,
        name: String,
        fields: &Fields,
    ) -> Result<(), String> {
        let described = objects::kind(&kind)?;
        let (namespace, short) = split(described, &name);
        let known = self.remembered.get(&(kind.clone(), name.clone()));
        let mut object = known.cloned().ok_or("remember it first")?;
        objects::set_all(&described.kind, &mut object, fields);
        let request = UpdateRequest {
            resource: described.resource(),
            namespace: namespace.to_owned(),
            name: short.to_owned(),
            object: Some(encode(described, &object)?),
            field_manager: USER.into(),
            ..UpdateRequest::default()
        };
        let mut user = self.user.clone();
        self.call(async move { user.update(request).await }).await;
        Ok(())
    }

    pub(super) async fn delete(
        &mut self,
        kind: &str,
        name: &str,
        fields: &Fields,
    ) -> Result<(), String> {
        let name = self.resolve(kind, name)?;
        let kind = objects::kind(kind)?;
        let (namespace, name) = split(kind, &name);
        let options = serde_json::to_value(fields.iter().cloned().collect::<BTreeMap<_, _>>());
        let options = options
            .and_then(serde_json::from_value)
            .map_err(|error| error.to_string())?;
        let request = DeleteRequest {
            resource: kind.resource(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            options: Some(options),
            field_manager: USER.into(),
            ..DeleteRequest::default()
        };
        let mut user = self.user.clone();
        self.call(async move { user.delete(request).await }).await;
        Ok(())
    }

    /// Ends the container of a Pod that is not restarted.
    pub(super) async fn end_container(&mut self, pod: &str, code: i32) -> Result<(), String> {
        let pod = &self.resolve("pod", pod)?;
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let state = json!({ "terminated": { "exitCode": code, "finishedAt": timestamp() } });
        let status = json!({
            "phase": phase,
            "containerStatuses": [{ "name": "main", "ready": false, "state": state }],
        });
        let patch = json!({ "status": status });
        self.patch(kubelet::NAME, kind("pod")?, pod, "status", patch)
            .await
    }

    pub(super) async fn set_ready(&mut self, pod: &str, ready: bool) -> Result<(), String> {
        let pod = &self.resolve("pod", pod)?;
        let status = if ready { "True" } else { "False" };
        let condition =
            json!({ "type": "Ready", "status": status, "lastTransitionTime": timestamp() });
        let patch = json!({ "status": { "conditions": [condition] } });
        self.patch(kubelet::NAME, kind("pod")?, pod, "status", patch)
            .await
    }

    pub(super) async fn show(&mut self, kind: &str, name: Option<&str>) -> Lines {
        let kind = objects::kind(kind)?;
        let objects = match name {
            Some(name) => vec![self.read(&kind.kind.to_lowercase(), name).await?],
            None => {
                let request = ListRequest {
                    resource: kind.resource(),
                    ..ListRequest::default()
                };
                let listed = self
                    .user
                    .list(request)
                    .await
                    .map_err(|error| error.to_string())?;
                let items = listed.into_inner().items.into_iter();
                items
                    .map(|item| decode(kind, item))
                    .collect::<Result<_, _>>()?
            }
        };
        Ok(print::table(&kind.kind, &objects))
    }

    pub(super) async fn read(&mut self, kind: &str, name: &str) -> Result<Value, String> {
        let kind = objects::kind(kind)?;
        let (namespace, name) = split(kind, name);
        let request = GetRequest {
            resource: kind.resource(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..GetRequest::default()
        };
        let found = self
            .user
            .get(request)
            .await
            .map_err(|error| error.message().to_owned())?;
        decode(kind, found.into_inner())
    }

    /// Makes a call of the user, whose write takes its turn as any other. A refusal is in the log.
    pub(super) async fn call<T>(&mut self, call: impl Future<Output = Result<T, Status>>) {
        tokio::pin!(call);
        loop {
            tokio::select! {
                biased;
                _ = &mut call => return,
                _ = self.simulation.step(QUIET) => {}
            }
        }
    }
}

fn patch_of(
    kind: &Kind,
    name: &str,
    form: patch_request::Type,
    patch: &Value,
    manager: &str,
) -> PatchRequest {
    let (namespace, name) = split(kind, name);
    PatchRequest {
        resource: kind.resource(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        r#type: form.into(),
        patch: patch.to_string().into_bytes().into(),
        field_manager: manager.to_owned(),
        ..PatchRequest::default()
    }
}

fn encode(kind: &'static Kind, object: &Value) -> Result<Any, String> {
    let object = kind
        .from_json(object.to_string().as_bytes())
        .map_err(|error| error.to_string())?;
    Ok(Any {
        type_url: kind.type_url.clone(),
        value: object.encode(),
    })
}

fn decode(kind: &'static Kind, object: Object) -> Result<Value, String> {
    let raw = object.object.ok_or("no object")?.value;
    let object = kind.decode(&raw).map_err(|error| error.to_string())?;
    Ok(object.to_document())
}

fn timestamp() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}
