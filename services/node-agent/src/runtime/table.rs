//! What a runtime remembers of its sandboxes, found by the name of their Pod.

use std::collections::HashMap;

use jiff::Timestamp;
use setpoint_model::Key;

use super::{Container, ContainerId, Error, Exit, Sandbox, SandboxConfig, State};

/// Sandboxes by Pod, and Pods by uid.
#[derive(Default)]
pub struct Table {
    sandboxes: HashMap<Key, Vec<Sandbox>>,
    names: HashMap<String, Key>,
}

impl Table {
    pub fn of(&self, pod: &Key) -> Vec<Sandbox> {
        self.sandboxes.get(pod).cloned().unwrap_or_default()
    }

    pub fn pods(&self) -> Vec<Key> {
        self.sandboxes.keys().cloned().collect()
    }

    pub fn key(&self, uid: &str) -> Option<Key> {
        self.names.get(uid).cloned()
    }

    /// Adds a sandbox; `false` if it is known already.
    pub fn add(&mut self, config: SandboxConfig) -> bool {
        let pod = config.pod();
        if self.names.insert(config.uid.clone(), pod.clone()).is_some() {
            return false;
        }
        let containers = Vec::new();
        self.sandboxes
            .entry(pod)
            .or_default()
            .push(Sandbox { config, containers });
        true
    }

    /// Adds a container; `false` if it is known already.
    ///
    /// # Errors
    /// Without its sandbox.
    pub fn insert(&mut self, container: Container) -> Result<bool, Error> {
        let containers = &mut self.sandbox(&container.id.uid)?.containers;
        let place = containers.binary_search_by(|other| other.id.cmp(&container.id));
        if let Err(place) = place {
            containers.insert(place, container);
        }
        Ok(place.is_err())
    }

    fn sandbox(&mut self, uid: &str) -> Result<&mut Sandbox, Error> {
        let unknown = || Error::Unknown(uid.to_owned());
        let pod = self.names.get(uid).ok_or_else(unknown)?;
        let sandboxes = self.sandboxes.get_mut(pod).ok_or_else(unknown)?;
        let found = sandboxes.iter_mut().find(|known| known.config.uid == uid);
        found.ok_or_else(unknown)
    }

    pub fn container(&mut self, id: &ContainerId) -> Result<&mut Container, Error> {
        let containers = &mut self.sandbox(&id.uid)?.containers;
        let found = containers.iter_mut().find(|known| known.id == *id);
        found.ok_or_else(|| Error::Unknown(id.to_string()))
    }

    /// The container runs now, unless it has ended already.
    pub fn started(&mut self, id: &ContainerId, since: Timestamp) {
        if let Ok(container) = self.container(id)
            && container.state == State::Starting
        {
            let stopping = None;
            container.state = State::Running { since, stopping };
        }
    }

    /// The container has ended. Gives its Pod, if that was news.
    pub fn exited(&mut self, id: &ContainerId, exit: Exit) -> Option<Key> {
        let container = self.container(id).ok()?;
        if matches!(container.state, State::Exited(_)) {
            return None;
        }
        container.state = State::Exited(exit);
        self.key(&id.uid)
    }

    /// # Errors
    /// While it runs.
    pub fn remove(&mut self, id: &ContainerId) -> Result<(), Error> {
        let Ok(container) = self.container(id) else {
            return Ok(());
        };
        if !matches!(container.state, State::Exited(_)) {
            return Err(Error::Running(id.to_string()));
        }
        self.sandbox(&id.uid)?
            .containers
            .retain(|known| known.id != *id);
        Ok(())
    }

    /// # Errors
    /// While a container of it runs.
    pub fn remove_sandbox(&mut self, uid: &str) -> Result<(), Error> {
        let Ok(sandbox) = self.sandbox(uid) else {
            return Ok(());
        };
        if let Some(container) = sandbox.alive().next() {
            return Err(Error::Running(container.id.to_string()));
        }
        let Some(pod) = self.names.remove(uid) else {
            return Ok(());
        };
        if let Some(sandboxes) = self.sandboxes.get_mut(&pod) {
            sandboxes.retain(|known| known.config.uid != uid);
            if sandboxes.is_empty() {
                self.sandboxes.remove(&pod);
            }
        }
        Ok(())
    }
}
