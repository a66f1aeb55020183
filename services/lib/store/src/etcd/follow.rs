//! Follows which members etcd has, so that calls go on with those that have joined when the ones of the settings die.

use std::time::Duration;

use tokio::time::sleep;
use tracing::{debug, info};

use super::membership::{Member, clients_of, listed};
use super::{Etcd, channel};

/// The interval of asking. A member that joins may be the only one that lives after this time.
const INTERVAL: Duration = Duration::from_secs(5);

impl Etcd {
    /// Lets calls go to the members that etcd itself names, at the URLs that they advertise to clients, while none of
    /// those of the settings works, and follows their change. Runs until dropped.
    pub async fn follow_members(&self) {
        let mut known = Vec::new();
        loop {
            match listed(&mut self.cluster.clone()).await {
                Ok(members) => self.use_members(&members, &mut known),
                Err(error) => debug!(%error, "the members of etcd cannot be read"),
            }
            sleep(INTERVAL).await;
        }
    }

    fn use_members(&self, members: &[Member], known: &mut Vec<String>) {
        let urls = clients_of(members);
        // None is no answer of a member that works.
        if urls.is_empty() || urls == *known {
            return;
        }
        let channel = |url: &str| channel(url, &self.settings);
        let mut each = self.members.iter();
        match each.try_for_each(|one| one.replace(&urls, channel)) {
            Ok(()) => info!(?urls, "these are the members of etcd"),
            Err(error) => debug!(%error, "a member of etcd has an address of no use"),
        }
        *known = urls;
    }
}
