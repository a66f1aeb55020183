//! A standby: watches the Lease and acquires it once it is free.

use setpoint_model::{Key, Revision};
use setpoint_proto::coordination::Lease;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Reason};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{debug, warn};

use super::Settings;
use super::holding::Holding;
use super::record::{Seen, taken};
use crate::client::ListOptions;
use crate::{Client, Informer, Reader, Whole};

/// A replica that does not hold the Lease.
pub(super) struct Candidate {
    pub(super) gateway: Client,
    pub(super) settings: Settings,
    pub(super) key: Key,
    pub(super) seen: watch::Receiver<Seen>,
    sender: watch::Sender<Seen>,
    instance: String,
    reader: Reader<Whole<Lease>>,
}

/// Returns the selection of the Lease of one election.
pub(super) fn only(key: &Key) -> ListOptions {
    ListOptions {
        namespace: key.namespace.clone(),
        fields: format!("metadata.name={}", key.name),
        ..ListOptions::default()
    }
}

impl Candidate {
    /// Returns a candidate, and the informer of Leases, which must be run. It may have been run before.
    pub(super) fn new(
        gateway: Client,
        settings: Settings,
        lease: &str,
        instance: &str,
        leases: Informer<Whole<Lease>>,
    ) -> (Self, Informer<Whole<Lease>>) {
        let (sender, seen) = watch::channel(Seen::now(None, Revision::default()));
        let key = Key::new(settings.namespace.clone(), lease);
        let (updates, ours) = (sender.clone(), key.clone());
        let informer = leases.on_event(move |delta| {
            let changed = delta.new.as_ref().or(delta.old.as_ref());
            if changed.is_some_and(|view| view.meta.key == ours) {
                let lease = delta.new.as_ref().map(|view| view.object.clone());
                updates.send_replace(Seen::now(lease, delta.revision));
            }
        });
        let reader = informer.reader();
        let instance = instance.to_owned();
        let candidate = Self {
            gateway,
            settings,
            key,
            seen,
            sender,
            instance,
            reader,
        };
        (candidate, informer)
    }

    /// Waits until the cache is complete, and takes over what it had before this candidate listened.
    async fn synced(&self) {
        self.reader.synced().await;
        let known = self.reader.get(&self.key);
        self.sender.send_if_modified(|seen| {
            let newer = known.filter(|view| seen.is_before(view.meta.revision));
            let is_newer = newer.is_some();
            if let Some(view) = newer {
                *seen = Seen::now(Some(view.object.clone()), view.meta.revision);
            }
            is_newer
        });
    }

    /// Waits until the Lease is free, and acquires it.
    pub(super) async fn win(&self) -> Holding<'_> {
        self.synced().await;
        let identity = format!("{}_{:08x}", self.instance, rand::random::<u32>());
        let mut seen = self.seen.clone();
        loop {
            let now = seen.borrow_and_update().clone();
            tokio::select! {
                () = sleep_until(now.free_at()) => {}
                Ok(()) = seen.changed() => continue,
            }
            match self.claim(now.lease.as_ref(), &identity).await {
                Ok(holding) => return holding,
                Err(error) => log_failure(&error),
            }
            // The write of another candidate arrives by the watch; after any other error the attempt is repeated.
            tokio::select! {
                () = self.pause() => {}
                Ok(()) = seen.changed() => {}
            }
        }
    }

    pub(super) async fn pause(&self) {
        sleep(self.settings.pause()).await;
    }

    async fn claim(&self, former: Option<&Lease>, identity: &str) -> Result<Holding<'_>, ApiError> {
        let Key { namespace, name } = self.key.clone();
        let meta = ObjectMeta {
            namespace,
            name,
            ..ObjectMeta::default()
        };
        let lease = taken(former, meta, identity, self.settings.lease_seconds());
        let sent = Instant::now();
        let written = match former {
            Some(_) => self.gateway.update(&lease).await,
            None => self.gateway.create(&lease).await,
        }?;
        Holding::new(self, written, identity, sent)
    }
}

fn log_failure(error: &ApiError) {
    match error.reason {
        Reason::Conflict | Reason::AlreadyExists => {
            debug!(%error, "another candidate acquired the Lease")
        }
        _ => warn!(%error, "could not acquire the Lease"),
    }
}
