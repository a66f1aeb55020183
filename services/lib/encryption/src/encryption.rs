//! The encryption in force, which may be replaced while it is used.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures::future::join_all;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::kms::{self, Reports};
use crate::resources::{self, GroupResource};
use crate::transformer::{ENCRYPTED, Opened, Sealer, Transformer};
use crate::{Configuration, Error, metrics};

/// The encryption of all resources. Without a configuration, everything is stored in plain text.
pub struct Encryption {
    rules: RwLock<Arc<Rules>>,
    /// The configuration in force.
    configuration: Mutex<Configuration>,
    shared: Arc<Shared>,
}

/// The listener to the changes of all providers.
struct Shared {
    changes: watch::Sender<u64>,
    health: watch::Sender<Result<(), String>>,
    /// The providers of KMS in force.
    providers: Mutex<Vec<Weak<kms::Provider>>>,
}

#[derive(Default)]
struct Rules {
    rules: Vec<(GroupResource, Transformer)>,
    providers: Vec<Arc<kms::Provider>>,
}

impl Default for Encryption {
    fn default() -> Self {
        Self::new(&Configuration::default())
    }
}

impl Encryption {
    /// Returns the encryption of a configuration. Its providers of KMS are asked once it is started.
    pub fn new(configuration: &Configuration) -> Self {
        metrics::register();
        let shared = Arc::new(Shared {
            changes: watch::Sender::default(),
            health: watch::Sender::new(Ok(())),
            providers: Mutex::default(),
        });
        let rules = Rules::new(configuration, &shared);
        shared.follow(&rules.providers);
        Self {
            rules: RwLock::new(Arc::new(rules)),
            configuration: Mutex::new(configuration.clone()),
            shared,
        }
    }

    /// Asks the providers of KMS for keys, and keeps asking for their status. They need not work yet.
    pub async fn start(&self) {
        let rules = self.rules.read().clone();
        rules.start().await;
    }

    /// Replaces the configuration, unless it is the one in force.
    ///
    /// # Errors
    /// If a provider of KMS does not work; then the one before stays in force.
    pub async fn replace(&self, configuration: &Configuration) -> Result<(), String> {
        if *self.configuration.lock() == *configuration {
            return Ok(());
        }
        let rules = Rules::new(configuration, &self.shared);
        rules.start().await;
        problems(&rules.providers)?;
        self.shared.follow(&rules.providers);
        *self.rules.write() = Arc::new(rules);
        *self.configuration.lock() = configuration.clone();
        self.shared.health_changed();
        self.shared.may_be_readable();
        Ok(())
    }

    /// Returns a receiver of whether all providers of KMS work.
    pub fn health(&self) -> watch::Receiver<Result<(), String>> {
        self.shared.health.subscribe()
    }

    /// Returns a receiver that changes whenever values may be readable that were not before.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    /// Returns what to store for a value of a resource. `key` is its key in the store.
    ///
    /// # Errors
    /// If the provider cannot seal.
    pub fn seal(
        &self,
        (group, resource): (&str, &str),
        key: &str,
        value: &Bytes,
    ) -> Result<Bytes, Error> {
        let rules = self.rules.read().clone();
        let Some(transformer) = resources::find(&rules.rules, group, resource) else {
            return Ok(value.clone());
        };
        let sealed = transformer.seal(value, key);
        let by = transformer.prefix();
        metrics::transformed("to_storage", (group, resource), by, sealed.is_ok());
        sealed
    }

    /// Returns the value of what was stored at a key.
    ///
    /// # Errors
    /// If no provider can open it.
    pub async fn open(
        &self,
        (group, resource): (&str, &str),
        key: &str,
        stored: &Bytes,
    ) -> Result<Opened, Error> {
        let rules = self.rules.read().clone();
        let opened = match resources::find(&rules.rules, group, resource) {
            Some(transformer) => transformer.open(stored, key).await,
            None if stored.starts_with(ENCRYPTED) => Err(Error::NoProvider),
            None => {
                return Ok(Opened {
                    value: stored.clone(),
                    stale: false,
                });
            }
        };
        let by = opened.as_ref().map_or("unknown", |(_, by)| by);
        metrics::transformed("from_storage", (group, resource), by, opened.is_ok());
        opened.map(|(opened, _)| opened)
    }
}

impl Rules {
    /// Returns the providers of each resource: those of all its entries, in their order.
    fn new(configuration: &Configuration, shared: &Arc<Shared>) -> Self {
        let reports: Weak<dyn Reports> = Arc::<Shared>::downgrade(shared);
        let mut all = Self::default();
        for entry in &configuration.resources {
            let providers = entry.providers.iter();
            let sealers: Vec<_> = providers
                .map(|provider| Arc::new(Sealer::new(provider, &reports)))
                .collect();
            all.providers
                .extend(sealers.iter().filter_map(|sealer| sealer.kms()));
            for resource in &entry.resources {
                let transformer = all.of(resource);
                sealers.iter().for_each(|one| transformer.push(one.clone()));
            }
        }
        all
    }

    /// Returns the transformer of these resources, which is added if there is none.
    fn of(&mut self, resource: &GroupResource) -> &mut Transformer {
        let place = self.rules.iter().position(|(named, _)| named == resource);
        let place = place.unwrap_or_else(|| {
            let added = (resource.clone(), Transformer::default());
            self.rules.push(added);
            self.rules.len() - 1
        });
        &mut self.rules[place].1
    }

    /// Asks all providers of KMS at once.
    async fn start(&self) {
        let providers = self.providers.iter();
        join_all(providers.map(|provider| provider.start())).await;
    }
}

impl Shared {
    fn follow(&self, providers: &[Arc<kms::Provider>]) {
        let providers = providers.iter().map(Arc::downgrade);
        *self.providers.lock() = providers.collect();
    }
}

impl Reports for Shared {
    fn health_changed(&self) {
        let providers = self.providers.lock().clone();
        let providers: Vec<_> = providers.iter().filter_map(Weak::upgrade).collect();
        // The former state is of no interest.
        drop(self.health.send_replace(problems(&providers)));
    }

    fn may_be_readable(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

/// Returns what is wrong with providers of KMS.
fn problems(providers: &[Arc<kms::Provider>]) -> Result<(), String> {
    let problems = providers.iter().filter_map(|provider| provider.problem());
    let problems: Vec<_> = problems.collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join(", ")),
    }
}

#[cfg(test)]
mod tests;
