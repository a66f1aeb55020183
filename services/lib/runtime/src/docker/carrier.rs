//! Copies files into volumes through containers that are never started.
//!
//! ```text
//! agent ─ upload ─▶ carrier ─▶ volume ─▶ pause container, read-only
//! ```
//! Nothing of a Pod runs in a carrier, so that nothing of a Pod writes to what only the agent may write.

use bollard::errors::Error as BollardError;
use bollard::models::{ContainerCreateBody, HostConfig, Mount};

use super::identity::{Labels, pod_labels};
use super::{Shared, create, is_not_found, termination, volume};
use crate::{Error, File, Volume};

/// Returns the name of the carrier of a Pod's volumes, which exists as long as the Pod.
fn name(uid: &str) -> String {
    format!("k8s_files_{uid}")
}

/// Returns the request for a carrier.
pub fn body(image: &str, labels: Labels, mounts: Vec<Mount>) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(image.to_owned()),
        // It never runs, but the engine demands a command.
        cmd: Some(vec!["-".to_owned()]),
        labels: Some(labels),
        host_config: Some(HostConfig {
            mounts: Some(mounts),
            network_mode: Some("none".to_owned()),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

impl Shared {
    /// Fills the volumes of a Pod. Its pause container must be running, because a tmpfs exists only while it is
    /// mounted.
    pub(super) async fn fill_volumes(
        &self,
        uid: &str,
        volumes: &[Volume],
        labels: &Labels,
    ) -> Result<(), Error> {
        let failed = |error| super::engine_error(format!("fill the volumes of Pod {uid}"), error);
        // One that exists may lack volumes.
        self.destroy(&name(uid)).await?;
        let made = self.make_carrier(uid, volumes, labels.clone()).await;
        made.map_err(failed)?;
        let filled = volume::fill(&self.engine, &name(uid), volumes).await;
        filled.map_err(failed)
    }

    /// Copies a file into the volume of a Pod's termination messages.
    pub(super) async fn copy_message(&self, uid: &str, file: File) -> Result<(), BollardError> {
        let (carrier, files) = (name(uid), [file]);
        match volume::copy(&self.engine, &carrier, &files).await {
            Err(error) if is_not_found(&error) => {}
            copied => return copied,
        }
        // Somebody has removed it, or the Pod is from before there were carriers.
        let labels = self.labels_of_pod(uid);
        self.make_carrier(uid, &[termination::volume()], labels)
            .await?;
        volume::copy(&self.engine, &carrier, &files).await
    }

    /// Returns the labels of what belongs to a Pod.
    pub(super) fn labels_of_pod(&self, uid: &str) -> Labels {
        let mut table = self.table.lock();
        let sandbox = table.sandbox(uid);
        sandbox.map_or_else(
            |_| Labels::new(),
            |sandbox| pod_labels(&sandbox.config, &self.engine.cluster, &self.node),
        )
    }

    async fn make_carrier(
        &self,
        uid: &str,
        volumes: &[Volume],
        labels: Labels,
    ) -> Result<(), BollardError> {
        let own = volumes.iter().filter(|volume| volume::is_own(volume));
        let mounts = own.map(|volume| create::volume_mount(uid, volume, false));
        let body = body(&self.pause_image, labels, mounts.collect());
        let made = self.create_named(&name(uid), body, |_| false).await;
        made.map(|_| ())
    }

    /// Copies files into a volume of the node, through a carrier of its own.
    pub(super) async fn copy_to(
        &self,
        mount: Mount,
        labels: Labels,
        files: &[File],
    ) -> Result<(), Error> {
        let failed = |error| super::engine_error("copy files into a volume of the node", error);
        let body = body(&self.pause_image, labels, vec![mount]);
        let name = format!("k8s_files_{}_{}", self.engine.cluster, self.node);
        let made = self.create_named(&name, body, |_| false).await;
        let carrier = made.map_err(failed)?.runtime_id;
        let copied = volume::copy(&self.engine, &carrier, files).await;
        self.destroy(&carrier).await?;
        copied.map_err(failed)
    }
}
