//! The Deployments of a cluster as a watch has them: to wait for one takes nothing of the machine, as asking again and
//! again would.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use setpoint_controller::{Client, Reader, Whole};
use setpoint_model::{Key, Revision};
use setpoint_proto::apps::Deployment;
use tokio::time::{sleep, timeout};
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
    /// If there is none, or it is not as wanted within `limit`; with its status then.
    pub async fn until(
        &self,
        key: &Key,
        since: Revision,
        limit: Duration,
        wanted: impl Fn(&Deployment) -> bool,
    ) -> anyhow::Result<()> {
        let waited = async {
            self.reader.reach(since).await;
            while !wanted(&self.get(key)?.object) {
                sleep(PAUSE).await;
            }
            Ok(())
        };
        let Ok(done) = timeout(limit, waited).await else {
            let status = &self.get(key)?.object.status;
            bail!("{key} is not as wanted after {limit:?}: {status:?}");
        };
        done
    }

    fn get(&self, key: &Key) -> anyhow::Result<Arc<Whole<Deployment>>> {
        let found = self.reader.get(key);
        found.with_context(|| format!("there is no Deployment {key}"))
    }
}
