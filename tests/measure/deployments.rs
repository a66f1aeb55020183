//! The Deployments of a cluster as a watch has them: to wait for one takes nothing of the machine, as asking again and
//! again would.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use setpoint_controller::{Client, Reader, Whole};
use setpoint_model::{Key, Revision};
use setpoint_proto::apps::{Deployment, DeploymentStatus};
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Pause between two looks at what the watch has brought.
const PAUSE: Duration = Duration::from_millis(1);

/// The Deployments, until dropped.
pub struct Deployments {
    reader: Reader<Whole<Deployment>>,
    _stop: DropGuard,
}

impl Deployments {
    /// Watches those of a cluster.
    pub fn watch(gateway: &Client) -> Self {
        let (informer, stop) = (gateway.informer(), CancellationToken::new());
        let reader = informer.reader();
        tokio::spawn(informer.run(stop.clone()));
        Self {
            reader,
            _stop: stop.drop_guard(),
        }
    }

    /// Waits until the status of one, at this revision or later, is as wanted.
    ///
    /// # Errors
    /// If it is deleted, or not as wanted within `limit`; with its status then.
    pub async fn until(
        &self,
        key: &Key,
        since: Revision,
        limit: Duration,
        wanted: impl Fn(&Deployment) -> bool,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        self.reader.reach(since).await;
        loop {
            let now = self.reader.get(key);
            let now = now.with_context(|| format!("{key} was deleted"))?;
            if wanted(&now.object) {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < limit,
                late(key, limit, &now.object.status)
            );
            sleep(PAUSE).await;
        }
    }
}

fn late(key: &Key, limit: Duration, status: &DeploymentStatus) -> String {
    format!("{key} is not as wanted after {limit:?}: {status:?}")
}
