//! In-memory state of a runtime: its sandboxes, by Pod.

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::time::Instant;

use jiff::Timestamp;
use setpoint_model::Key;
use setpoint_proto::core::ResourceRequirements;

use crate::image_records::familiar;
use crate::{Container, ContainerId, Error, Exit, Sandbox, SandboxConfig, State};

/// Sandboxes by Pod, and Pods by uid.
#[derive(Default)]
pub struct Table {
    sandboxes: HashMap<Key, Vec<Sandbox>>,
    names: HashMap<String, Key>,
}

impl Table {
    pub fn sandboxes_of(&self, pod: &Key) -> Vec<Sandbox> {
        self.sandboxes.get(pod).cloned().unwrap_or_default()
    }

    pub fn pods(&self) -> Vec<Key> {
        self.sandboxes.keys().cloned().collect()
    }

    pub fn key(&self, uid: &str) -> Option<Key> {
        self.names.get(uid).cloned()
    }

    /// Adds a sandbox; returns `false` if it exists.
    pub fn add(&mut self, config: SandboxConfig) -> bool {
        let pod = config.pod();
        if self.names.insert(config.uid.clone(), pod.clone()).is_some() {
            return false;
        }
        let containers = Vec::new();
        self.sandboxes.entry(pod).or_default().push(Sandbox {
            config,
            id: String::new(),
            ready: true,
            containers,
        });
        true
    }

    /// Adds a container; returns `false` if it exists. Its sandbox id defaults to that of the current sandbox.
    ///
    /// # Errors
    /// If the sandbox does not exist.
    pub fn insert(&mut self, mut container: Container) -> Result<bool, Error> {
        let sandbox = self.sandbox(&container.id.uid)?;
        if container.sandbox.is_empty() {
            container.sandbox.clone_from(&sandbox.id);
        }
        let containers = &mut sandbox.containers;
        let place = containers.binary_search_by(|other| other.id.cmp(&container.id));
        if let Err(place) = place {
            containers.insert(place, container);
        }
        Ok(place.is_err())
    }

    pub fn sandbox(&mut self, uid: &str) -> Result<&mut Sandbox, Error> {
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

    /// Returns the state of a container.
    pub fn state(&mut self, id: &ContainerId) -> Option<State> {
        self.container(id).ok().map(|known| known.state.clone())
    }

    /// Returns a container that runs.
    ///
    /// # Errors
    /// If it does not exist or does not run.
    pub fn running(&mut self, id: &ContainerId) -> Result<&mut Container, Error> {
        let container = self.container(id)?;
        match container.state {
            State::Running { .. } => Ok(container),
            _ => Err(Error::NotRunning(id.name.clone())),
        }
    }

    /// Replaces the requests and limits of a container that runs.
    ///
    /// # Errors
    /// If it does not exist or does not run.
    pub fn set_resources(
        &mut self,
        id: &ContainerId,
        resources: &ResourceRequirements,
    ) -> Result<(), Error> {
        self.running(id)?.resources = Some(resources.clone());
        Ok(())
    }

    /// Marks a starting container as running.
    pub fn set_running(&mut self, id: &ContainerId, since: Timestamp) {
        if let Ok(container) = self.container(id)
            && container.state == State::Starting
        {
            let stopping = None;
            container.state = State::Running { since, stopping };
        }
    }

    /// Marks a container as exited. Returns its Pod unless it had exited before.
    pub fn set_exited(&mut self, id: &ContainerId, exit: Exit) -> Option<Key> {
        let container = self.container(id).ok()?;
        if matches!(container.state, State::Exited(_)) {
            return None;
        }
        container.state = State::Exited(Exit {
            observed: Some(Instant::now()),
            ..exit
        });
        self.key(&id.uid)
    }

    /// Sets the reason of a container's end, which an engine may tell after the end.
    pub fn set_reason(&mut self, id: &ContainerId, reason: &str) {
        if let Ok(Container {
            state: State::Exited(exit),
            ..
        }) = self.container(id)
        {
            exit.reason = Some(reason.to_owned());
        }
    }

    /// Removes a container that could not be created, unless it is known meanwhile to have started.
    pub fn discard(&mut self, id: &ContainerId) {
        if let Ok(sandbox) = self.sandbox(&id.uid) {
            let is_kept = |known: &Container| known.id != *id || known.state != State::Starting;
            sandbox.containers.retain(is_kept);
        }
    }

    /// Sets the runtime's id of a sandbox.
    pub fn set_sandbox_id(&mut self, uid: &str, id: String) {
        if let Ok(sandbox) = self.sandbox(uid) {
            sandbox.id = id;
        }
    }

    /// Marks a sandbox as ready and sets its address, if given.
    pub fn set_ready(&mut self, uid: &str, ip: Option<Ipv4Addr>) {
        if let Ok(sandbox) = self.sandbox(uid) {
            sandbox.ready = true;
            sandbox.config.ip = ip.unwrap_or(sandbox.config.ip);
        }
    }

    /// Marks a sandbox as lost. Returns its Pod unless it was lost before.
    pub fn set_lost(&mut self, uid: &str) -> Option<Key> {
        let sandbox = self.sandbox(uid).ok()?;
        std::mem::replace(&mut sandbox.ready, false).then(|| sandbox.config.pod())
    }

    /// Updates the ids that the runtime assigned to a container.
    pub fn update_ids(&mut self, observed: &Container) {
        if let Ok(known) = self.container(&observed.id) {
            known.runtime_id.clone_from(&observed.runtime_id);
            known.sandbox.clone_from(&observed.sandbox);
            known.image_id.clone_from(&observed.image_id);
        }
    }

    /// Returns the configurations of all sandboxes.
    pub fn configs(&self) -> Vec<SandboxConfig> {
        let sandboxes = self.sandboxes.values().flatten();
        sandboxes.map(|sandbox| sandbox.config.clone()).collect()
    }

    /// Returns all containers.
    pub fn containers(&self) -> Vec<Container> {
        let sandboxes = self.sandboxes.values().flatten();
        sandboxes
            .flat_map(|sandbox| &sandbox.containers)
            .cloned()
            .collect()
    }

    /// Returns the [familiar names](familiar) of the images of all containers.
    pub fn images(&self) -> HashSet<String> {
        let sandboxes = self.sandboxes.values().flatten();
        let containers = sandboxes.flat_map(|sandbox| &sandbox.containers);
        containers
            .map(|container| familiar(&container.image))
            .collect()
    }

    /// Returns all containers that have not exited.
    pub fn alive(&self) -> Vec<Container> {
        let sandboxes = self.sandboxes.values().flatten();
        sandboxes.flat_map(Sandbox::alive).cloned().collect()
    }

    /// Returns a container that may be removed; `None` if it does not exist.
    ///
    /// # Errors
    /// If it has not exited.
    pub fn removable(&mut self, id: &ContainerId) -> Result<Option<Container>, Error> {
        match self.container(id) {
            Ok(container) if matches!(container.state, State::Exited(_)) => {
                Ok(Some(container.clone()))
            }
            Ok(_) => Err(Error::Running(id.to_string())),
            Err(_) => Ok(None),
        }
    }

    /// Removes a container; does nothing if it does not exist.
    ///
    /// # Errors
    /// If it has not exited.
    pub fn remove(&mut self, id: &ContainerId) -> Result<(), Error> {
        if self.removable(id)?.is_some() {
            let containers = &mut self.sandbox(&id.uid)?.containers;
            containers.retain(|known| known.id != *id);
        }
        Ok(())
    }

    /// Returns the configuration of a sandbox that may be removed; `None` if it does not exist.
    ///
    /// # Errors
    /// If one of its containers has not exited.
    pub fn removable_sandbox(&mut self, uid: &str) -> Result<Option<SandboxConfig>, Error> {
        let Ok(sandbox) = self.sandbox(uid) else {
            return Ok(None);
        };
        match sandbox.alive().next() {
            Some(container) => Err(Error::Running(container.id.to_string())),
            None => Ok(Some(sandbox.config.clone())),
        }
    }

    /// Removes a sandbox; does nothing if it does not exist.
    ///
    /// # Errors
    /// If one of its containers has not exited.
    pub fn remove_sandbox(&mut self, uid: &str) -> Result<(), Error> {
        self.removable_sandbox(uid)?;
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
