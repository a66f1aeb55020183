//! Makes and removes sandboxes.

use std::net::{Ipv4Addr, SocketAddr};

use k8s_cri::v1::{
    PodSandbox, PodSandboxFilter, PodSandboxState, PodSandboxStatusRequest,
    RemovePodSandboxRequest, RunPodSandboxRequest, StopPodSandboxRequest,
};
use tonic::Status;
use tracing::{info, warn};

use super::client::{Service, call, failed, is_not_found};
use super::create::{self, Surroundings};
use super::{Attempt, Shared, abilities, identity, state_error};
use crate::streams::Unconnected;
use crate::{Error, SandboxConfig};

impl Attempt {
    /// Returns the attempt that a listed sandbox is.
    pub(super) fn of(listed: &PodSandbox) -> Self {
        Self {
            number: listed.metadata.as_ref().map_or(0, |meta| meta.attempt),
            created_at: listed.created_at,
            runtime_id: listed.id.clone(),
        }
    }
}

impl Shared {
    /// Makes the sandbox of a Pod unless it has one, with its files. One that an earlier agent has left is taken over;
    /// one that has died is stopped first, and is kept as long as its containers are.
    pub(super) async fn run_pod_sandbox(&self, mut config: SandboxConfig) -> Result<(), Error> {
        let uid = config.uid.clone();
        let is_ready = |known: &mut crate::Sandbox| known.ready;
        if self.table.lock().sandbox(&uid).is_ok_and(is_ready) {
            return Ok(());
        }
        config.first_user = self.first_user(&config)?;
        let made = self.files.create(&config);
        made.map_err(|source| state_error(&uid, source))?;
        config.volumes.clear();
        self.incomplete.lock().insert(uid.clone());
        let ran = self.take_or_run(&config).await;
        let ran = ran.and_then(|(attempt, ip)| {
            config.ip = given(&config, ip);
            let written = self.files.write_hosts(&config);
            written.map_err(|source| state_error(&uid, source))?;
            Ok(attempt)
        });
        self.incomplete.lock().remove(&uid);
        self.set_sandbox(config, ran?, true);
        Ok(())
    }

    /// Returns the first id of the users of a Pod; `None` if they are those of its node.
    fn first_user(&self, config: &SandboxConfig) -> Result<Option<u32>, Error> {
        if !config.own_users {
            return Ok(None);
        }
        abilities::check_users(&self.service.features, &config.runtime_handler)?;
        let first = self.user_ids.lock().of(&config.uid);
        let none =
            "create user namespace: could not find an empty slot to allocate a user namespace";
        first.map(Some).ok_or_else(|| Error::Config(none.into()))
    }

    /// Returns the newest sandbox of a Pod if it is ready, and makes another one if not; with its address.
    async fn take_or_run(
        &self,
        config: &SandboxConfig,
    ) -> Result<(Attempt, Option<Ipv4Addr>), Error> {
        let (pod, uid) = (config.pod(), &config.uid);
        let listed = self.list_sandboxes(identity::of_pod(&self.node, uid)).await;
        let mut listed = listed.map_err(failed(format!("list the sandboxes of {pod}")))?;
        listed.sort_by_key(Attempt::of);
        if let Some(newest) = listed.last()
            && newest.state() == PodSandboxState::SandboxReady
        {
            info!(%pod, sandbox = newest.id, "taking over the sandbox that exists");
            let address = self.address(&newest.id).await;
            let address = address.map_err(failed(format!("inspect the sandbox of {pod}")))?;
            return Ok((Attempt::of(newest), address));
        }
        for dead in &listed {
            // Its address and its ports are free only then.
            let stopped = stop(&self.service, &dead.id).await;
            stopped.map_err(failed(format!("stop the sandbox of {pod}")))?;
        }
        let number = listed.last().map_or(0, |last| {
            let number = last.metadata.as_ref().map_or(0, |meta| meta.attempt);
            number.saturating_add(1)
        });
        self.run(config, number).await
    }

    async fn run(
        &self,
        config: &SandboxConfig,
        number: u32,
    ) -> Result<(Attempt, Option<Ipv4Addr>), Error> {
        let (pod, uid) = (config.pod(), &config.uid);
        let annotations = identity::annotations(config);
        let annotations =
            annotations.map_err(|error| state_error(uid, std::io::Error::other(error)))?;
        let made = create::sandbox(
            config,
            Surroundings {
                attempt: number,
                labels: identity::of_sandbox(&self.node, &pod, uid),
                annotations,
                log_directory: self.files.logs_of(config).display().to_string(),
                cgroup_parent: self.make_cgroup(config).await?,
            },
        );
        let request = RunPodSandboxRequest {
            config: Some(made),
            runtime_handler: config.runtime_handler.clone(),
        };
        let what = || format!("create the sandbox of {pod}");
        let ran = call(self.service.runtime().run_pod_sandbox(request)).await;
        let runtime_id = ran.map_err(failed(what()))?.pod_sandbox_id;
        let address = self.address(&runtime_id).await.map_err(failed(what()))?;
        let attempt = Attempt {
            number,
            created_at: i64::MAX,
            runtime_id,
        };
        Ok((attempt, address))
    }

    /// Returns the address of a sandbox; `None` for one in the network of its node.
    pub(super) async fn address(&self, runtime_id: &str) -> Result<Option<Ipv4Addr>, Status> {
        let request = PodSandboxStatusRequest {
            pod_sandbox_id: runtime_id.to_owned(),
            verbose: false,
        };
        let answer = call(self.service.runtime().pod_sandbox_status(request)).await?;
        let network = answer.status.and_then(|status| status.network);
        Ok(network.and_then(|network| {
            let more = network.additional_ips.into_iter().map(|more| more.ip);
            let mut all = std::iter::once(network.ip).chain(more);
            // With two families either may be the first.
            all.find_map(|ip| ip.parse().ok())
        }))
    }

    /// Returns the sandboxes with these labels.
    pub(super) async fn list_sandboxes(
        &self,
        labels: identity::Pairs,
    ) -> Result<Vec<PodSandbox>, Status> {
        let filter = PodSandboxFilter {
            label_selector: labels,
            ..PodSandboxFilter::default()
        };
        self.list_sandboxes_by(filter).await
    }

    /// Returns the sandboxes that a filter selects.
    pub(super) async fn list_sandboxes_by(
        &self,
        filter: PodSandboxFilter,
    ) -> Result<Vec<PodSandbox>, Status> {
        let request = k8s_cri::v1::ListPodSandboxRequest {
            filter: Some(filter),
        };
        let answer = call(self.service.runtime().list_pod_sandbox(request)).await?;
        Ok(answer.items)
    }

    /// Updates the sandbox of a Pod in memory, and wakes it if anything has changed. Attempts older than the newest are
    /// ignored.
    pub(super) fn set_sandbox(&self, config: SandboxConfig, attempt: Attempt, is_ready: bool) {
        let (pod, uid, ip) = (config.pod(), config.uid.clone(), config.ip);
        let runtime_id = attempt.runtime_id.clone();
        {
            let mut sandboxes = self.sandboxes.lock();
            match sandboxes.get(&uid) {
                Some(newer) if newer.number > attempt.number => return,
                _ => drop(sandboxes.insert(uid.clone(), attempt)),
            }
        }
        let mut table = self.table.lock();
        let is_new = table.add(config.clone());
        let changed = table.sandbox(&uid).is_ok_and(|known| {
            let changed = known.id != runtime_id || known.ready != is_ready;
            if !is_new && known.id != runtime_id {
                known.config = config;
            }
            changed
        });
        table.set_sandbox_id(&uid, runtime_id);
        match is_ready {
            true => table.set_ready(&uid, Some(ip)),
            false => drop(table.set_lost(&uid)),
        }
        drop(table);
        if is_new || changed {
            (self.wake)(&pod);
        }
    }

    /// Removes a Pod from the runtime, with its containers and files.
    pub(super) async fn remove_pod(&self, uid: &str) -> Result<(), Error> {
        let known = self.table.lock().removable_sandbox(uid)?;
        let what = || format!("remove the sandbox of Pod {uid}");
        let listed = self.list_sandboxes(identity::of_pod(&self.node, uid)).await;
        for sandbox in listed.map_err(failed(what()))? {
            let removed = end(&self.service, &sandbox.id).await;
            removed.map_err(failed(what()))?;
        }
        if let Some(config) = known {
            let removed = self.files.remove(&config);
            removed.map_err(|source| state_error(uid, source))?;
            self.remove_cgroup(&config).await?;
        }
        self.sandboxes.lock().remove(uid);
        self.user_ids.lock().release(uid);
        self.configs.lock().retain(|id, _| id.uid != uid);
        self.images.forget(uid);
        self.table.lock().remove_sandbox(uid)
    }

    /// Removes dead sandboxes of a Pod that a newer one has replaced, once their containers are gone.
    pub(super) async fn collect(&self, replaced: &[PodSandbox], used: &[k8s_cri::v1::Container]) {
        for dead in replaced {
            if used
                .iter()
                .any(|container| container.pod_sandbox_id == dead.id)
            {
                continue;
            }
            if let Err(status) = end(&self.service, &dead.id).await {
                warn!(sandbox = dead.id, %status, "cannot remove the sandbox that was replaced");
            }
        }
    }
}

/// Returns the address of a Pod to whose sandbox the runtime has given this one. One in the network of its node has the
/// address of that. The runtime assigns all others, so that a Pod without a sandbox has none.
pub(super) fn given(config: &SandboxConfig, address: Option<Ipv4Addr>) -> Ipv4Addr {
    let own = match config.host_network {
        true => config.ip,
        false => Ipv4Addr::UNSPECIFIED,
    };
    address.unwrap_or(own)
}

/// Returns the address of a port of a Pod.
///
/// # Errors
/// If the Pod has none: a connection to the unspecified address would be one to this machine.
pub(super) fn address(ip: Ipv4Addr, port: u16) -> Result<SocketAddr, Error> {
    let address = SocketAddr::from((ip, port));
    match ip.is_unspecified() {
        true => Err(Error::Connect(Unconnected {
            address,
            source: std::io::ErrorKind::HostUnreachable.into(),
        })),
        false => Ok(address),
    }
}

/// Stops and removes a sandbox with its containers.
///
/// # Errors
/// If the runtime does not do so.
pub async fn end(service: &Service, runtime_id: &str) -> Result<(), Status> {
    stop(service, runtime_id).await?;
    let request = RemovePodSandboxRequest {
        pod_sandbox_id: runtime_id.to_owned(),
    };
    ignore_not_found(call(service.runtime().remove_pod_sandbox(request)).await)
}

async fn stop(service: &Service, runtime_id: &str) -> Result<(), Status> {
    let request = StopPodSandboxRequest {
        pod_sandbox_id: runtime_id.to_owned(),
    };
    ignore_not_found(call(service.runtime().stop_pod_sandbox(request)).await)
}

fn ignore_not_found<T>(answer: Result<T, Status>) -> Result<(), Status> {
    match answer {
        Err(status) if is_not_found(&status) => Ok(()),
        answer => answer.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_runtime_assigns_addresses_to_pods_in_networks_of_their_own() {
        let requested = Ipv4Addr::new(10, 115, 17, 2);
        let mut config = SandboxConfig {
            ip: requested,
            ..SandboxConfig::default()
        };
        let address = Ipv4Addr::new(10, 88, 0, 7);
        assert_eq!(given(&config, Some(address)), address);
        assert_eq!(given(&config, None), Ipv4Addr::UNSPECIFIED);
        config.host_network = true;
        assert_eq!(given(&config, None), requested);
    }

    #[test]
    fn a_pod_without_an_address_is_not_taken_for_the_machine() {
        let of = |ip| address(ip, 80).map_or_else(|error| error.to_string(), |at| at.to_string());
        assert_eq!(of(Ipv4Addr::new(10, 88, 0, 7)), "10.88.0.7:80");
        let refused = of(Ipv4Addr::UNSPECIFIED);
        assert_eq!(refused, "dial tcp 0.0.0.0:80: connect: host unreachable");
    }
}
