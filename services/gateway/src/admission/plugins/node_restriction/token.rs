//! Tokens: a node asks for those of its Pods, for the audiences that they name.

use prost::Message;
use setpoint_codec::kind_of;
use setpoint_kinds::pod::references;
use setpoint_model::Key;
use setpoint_proto::authentication::{BoundObjectReference, TokenRequest};
use setpoint_proto::core::{
    PersistentVolume, PersistentVolumeClaim, Pod, Volume, VolumeProjection,
};
use setpoint_proto::storage::CsiDriver;
use setpoint_proto::{ApiError, Resource as Stored};

use super::{Outcome, Write, forbidden};
use crate::admission::Operation;
use crate::errors;
use crate::request::{Attributes, Resource};

impl Write<'_> {
    pub(super) async fn check_token(&self) -> Outcome {
        if self.request.operation != Operation::Create {
            return Ok(());
        }
        let spec = &self.object::<TokenRequest>()?.spec;
        let bound = spec.bound_object_ref.as_ref();
        let Some(bound) = bound.filter(|bound| is_pod(bound)) else {
            return forbidden("node requested token not bound to a pod");
        };
        if bound.uid.is_empty() {
            return forbidden("node requested token with a pod binding without a uid");
        }
        let key = Key::new(&self.request.target.namespace, &bound.name);
        let pod = self.pod(&key).await?;
        if bound.uid != pod.metadata.uid {
            return forbidden(format!(
                "the UID in the bound object reference ({}) does not match the UID in record. The object might have \
                been deleted and then recreated",
                bound.uid
            ));
        }
        if pod.spec.node_name != self.node {
            return forbidden("node requested token bound to a pod scheduled on a different node");
        }
        match spec.audiences.as_slice() {
            [] => self.check_audience(&pod, "").await,
            [audience] => self.check_audience(&pod, audience).await,
            _ => forbidden("node may only request 0 or 1 audiences"),
        }
    }

    /// Allows an audience that a volume of the Pod names, or that the node is granted by the verb
    /// `request-serviceaccounts-token-audience`.
    async fn check_audience(&self, pod: &Pod, audience: &str) -> Outcome {
        let mut problems = Vec::new();
        for volume in &pod.spec.volumes {
            match self.has_audience(pod, volume, audience).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) => problems.push(error.message),
            }
        }
        let problems = match problems.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(format!("[{}]", several.join(", "))),
        };
        if let Some(problems) = problems {
            return forbidden(format!(
                "error validating audience {audience:?}: {problems}"
            ));
        }
        let user = &self.request.context.user;
        match self.authorizer.allows(user, &self.question(audience)) {
            true => Ok(()),
            false => forbidden(format!(
                "audience {audience:?} not found in pod spec volume, {} is not authorized to request tokens for this \
                audience",
                user.name
            )),
        }
    }

    fn question(&self, audience: &str) -> Attributes {
        let target = self.request.target;
        let resource = Resource {
            version: "v1".into(),
            resource: audience.into(),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            ..Resource::default()
        };
        Attributes::of_resource("request-serviceaccounts-token-audience", resource)
    }

    /// Returns whether a volume needs a token for an audience: a projected one itself, or the driver of a CSI volume.
    async fn has_audience(
        &self,
        pod: &Pod,
        volume: &Volume,
        audience: &str,
    ) -> Result<bool, ApiError> {
        let source = &volume.volume_source;
        if let Some(projected) = &source.projected {
            let mut tokens = projected.sources.iter();
            let names = |source: &_| names_audience(source, audience);
            return Ok(tokens.any(names));
        }
        let driver = match (&source.csi, references::claim_of_volume(pod, volume)) {
            (Some(csi), _) => Some(csi.driver.clone()),
            (None, Some(claim)) => {
                let namespace = &pod.metadata.namespace;
                self.driver_of(&Key::new(namespace, &claim)).await?
            }
            (None, None) => None,
        };
        let Some(driver) = driver else {
            return Ok(false);
        };
        let driver: CsiDriver = self.find(&Key::new("", &driver)).await?;
        let mut tokens = driver.spec.token_requests.iter();
        Ok(tokens.any(|token| token.audience == audience))
    }

    /// Returns the CSI driver of a claim; `None` if its volume has none.
    async fn driver_of(&self, claim: &Key) -> Result<Option<String>, ApiError> {
        let claim: PersistentVolumeClaim = self.find(claim).await?;
        let name = Key::new("", &claim.spec.volume_name);
        let volume: PersistentVolume = self.find(&name).await?;
        let source = volume.spec.persistent_volume_source;
        Ok(source.csi.map(|csi| csi.driver))
    }

    /// Returns an object.
    ///
    /// # Errors
    /// `NotFound`.
    async fn find<T>(&self, key: &Key) -> Result<T, ApiError>
    where
        T: Stored + Message + Default,
    {
        let found = self.reader.find::<T>(key).await?;
        found.ok_or_else(|| errors::not_found(kind_of::<T>(), &key.name))
    }
}

fn is_pod(bound: &BoundObjectReference) -> bool {
    bound.api_version == Pod::API_VERSION && bound.kind == Pod::KIND && !bound.name.is_empty()
}

fn names_audience(source: &VolumeProjection, audience: &str) -> bool {
    let token = source.service_account_token.as_ref();
    token.is_some_and(|token| token.audience == audience)
}
