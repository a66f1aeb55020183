//! The plane that a script moves: the simulation, the processes, and the user.

mod user;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use setpoint_controller::{Configured, Recorder, Replica, runtime};
use setpoint_controller_manager::CONTROLLERS;
use setpoint_host::Host;
use setpoint_model::replicas::SYSTEM_NAMESPACE;
use setpoint_proto::setpoint::objects_client::ObjectsClient;
use setpoint_scheduler as scheduler;
use setpoint_simulation::{Entry, Simulation, record_plans, short};
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tracing::subscriber::DefaultGuard;

use crate::command::{Command, Fields, Process};
use crate::kubelet::{self, PoweredOff};
use crate::objects::{self, kind};
use crate::print;

const USER: &str = "user";
const SCHEDULER: &str = "scheduler";
/// The namespaces that exist from the start.
const NAMESPACES: [&str; 4] = [
    "default",
    "kube-node-lease",
    "setpoint-replicas",
    SYSTEM_NAMESPACE,
];
/// The time without a write after which the plane is stable: longer than the batches of Events and the first retries.
const QUIET: Duration = Duration::from_secs(3);
/// The largest number of writes until then. A plane that writes more does not converge.
const MOST_WRITES: usize = 300;

/// The plane.
pub struct Plane {
    simulation: Simulation,
    user: ObjectsClient<Channel>,
    off: PoweredOff,
    /// The objects in the order in which they were created, as kind in lower case and name.
    created: Vec<(String, String)>,
    /// The objects that the user has read, by kind and name.
    remembered: BTreeMap<(String, String), Value>,
    _plans: DefaultGuard,
}

type Lines = Result<Vec<String>, String>;

impl Plane {
    /// Starts a plane with its namespaces and without controllers.
    pub async fn start() -> Self {
        let mut simulation = Simulation::start().await;
        let user = simulation.client(USER, USER);
        let mut plane = Self {
            user: ObjectsClient::new(user.channel()),
            off: PoweredOff::default(),
            created: Vec::new(),
            remembered: BTreeMap::new(),
            _plans: record_plans(simulation.log()),
            simulation,
        };
        for namespace in NAMESPACES {
            plane
                .create("namespace", namespace, &Fields::new())
                .await
                .unwrap();
        }
        plane
            .create("serviceaccount", "default", &Fields::new())
            .await
            .unwrap();
        plane.simulation.log().take();
        plane
    }

    /// Runs a command. Returns what it prints.
    pub async fn run(&mut self, command: Command) -> Lines {
        match command {
            Command::Node(name, fields) => self.node(&name, &fields).await?,
            Command::Start(names) => {
                names.iter().try_for_each(|name| self.start_process(name))?;
                self.simulation.settle(QUIET, MOST_WRITES).await;
            }
            Command::Create(kind, name, fields) => self.create(&kind, &name, &fields).await?,
            Command::Apply(manager, kind, name, fields) => {
                self.apply(&manager, &kind, &name, &fields).await?;
            }
            Command::Patch(manager, kind, name, fields) => {
                let name = self.resolve(&kind, &name)?;
                let kind = objects::kind(&kind)?;
                let patch = objects::patch(kind, &fields);
                self.patch(&manager, kind, &name, "", patch).await?;
            }
            Command::Remember(kind, name) => self.remember(kind, name).await?,
            Command::Replace(kind, name, fields) => self.replace(kind, name, &fields).await?,
            Command::Delete(kind, name, fields) => self.delete(&kind, &name, &fields).await?,
            Command::Ended(pod, code) => self.end_container(&pod, code).await?,
            Command::Ready(pod, ready) => self.set_ready(&pod, ready).await?,
            Command::Show(kind, name) => return self.show(&kind, name.as_deref()).await,
            Command::Stabilize => {
                if !self.simulation.settle(QUIET, MOST_WRITES).await {
                    return Err(format!("no end after {MOST_WRITES} writes"));
                }
            }
            Command::Wait(time) => self.simulation.advance(time).await,
            Command::Step(count) => {
                for _ in 0..count {
                    self.simulation.step(QUIET).await;
                }
            }
            Command::Power(node, true) => _ = self.off.lock().remove(&node),
            Command::Power(node, false) => _ = self.off.lock().insert(node),
            fault => self.fault(fault).await?,
        }
        let entries = self.simulation.log().take();
        self.created.extend(entries.iter().filter_map(created));
        Ok(print::lines(entries))
    }

    /// Returns the name of an object: `web#2` is the second one that was created with a name that begins with `web-`.
    fn resolve(&self, kind: &str, name: &str) -> Result<String, String> {
        let Some((prefix, number)) = name.split_once('#') else {
            return Ok(name.to_owned());
        };
        let (kind, prefix) = (
            objects::kind(kind)?.kind.to_lowercase(),
            format!("{prefix}-"),
        );
        let number: usize = number
            .parse()
            .map_err(|_| format!("not a number: {number}"))?;
        let all = self.created.iter().filter(|(of, _)| *of == kind);
        let mut such = all
            .map(|(_, name)| name)
            .filter(|name| name.starts_with(&prefix));
        let found = number.checked_sub(1).and_then(|before| such.nth(before));
        found
            .cloned()
            .ok_or_else(|| format!("no such {kind} was created: {name}"))
    }

    /// Switches a fault of a process on or off.
    async fn fault(&mut self, command: Command) -> Result<(), String> {
        let exists = match command {
            Command::Kill(process) => {
                let name = self.name_of(process).await?;
                self.simulation.kill(&name)
            }
            Command::Freeze(process) => {
                let name = self.name_of(process).await?;
                self.simulation
                    .set_faults(&name, |faults| faults.frozen = true)
            }
            Command::Thaw(process) => {
                let name = self.name_of(process).await?;
                self.simulation
                    .set_faults(&name, |faults| faults.frozen = false)
            }
            Command::Hold(process, held) => {
                let name = self.name_of(process).await?;
                self.simulation
                    .set_faults(&name, |faults| faults.holds_writes = held)
            }
            Command::Lag(resource, process) => {
                let (name, resource) = (self.name_of(process).await?, kind(&resource)?.resource());
                self.simulation
                    .set_faults(&name, |faults| _ = faults.lagging.insert(resource))
            }
            Command::CatchUp(resource, process) => {
                let (name, resource) = (self.name_of(process).await?, kind(&resource)?.resource());
                self.simulation
                    .set_faults(&name, |faults| _ = faults.lagging.remove(&resource))
            }
            Command::Break(process, expired) => {
                let name = self.name_of(process).await?;
                self.simulation.break_watches(&name, expired).await
            }
            Command::Lose(process) => {
                let name = self.name_of(process).await?;
                self.simulation
                    .set_faults(&name, |faults| faults.lost_answers += 1)
            }
            Command::Crash(process, after) => {
                let name = self.name_of(process).await?;
                self.simulation
                    .set_faults(&name, |faults| faults.crash_after = Some(after))
            }
            _ => unreachable!("the caller runs all other commands"),
        };
        exists
            .then_some(())
            .ok_or_else(|| "there is no such process".into())
    }

    /// Returns the name of a process. A first replica has the name of its controller and the number 0.
    async fn name_of(&mut self, process: Process) -> Result<String, String> {
        match process {
            Process::Named(name) => Ok(instance(&name).1),
            Process::LeaderOf(controller) => {
                let lease = self
                    .read("lease", &format!("{SYSTEM_NAMESPACE}/{controller}"))
                    .await?;
                let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
                Ok(print::holder(holder).to_owned())
            }
        }
    }

    fn start_process(&mut self, name: &str) -> Result<(), String> {
        let (service, instance) = instance(name);
        if service == kubelet::NAME {
            let client = self.simulation.client(&instance, kubelet::NAME);
            let running = kubelet::run(client, self.off.clone());
            self.simulation.spawn(&instance, running);
            return Ok(());
        }
        let hosted = CONTROLLERS.iter().find(|hosted| hosted.name() == service);
        let hosted = hosted.map(|hosted| hosted.with_defaults());
        let (name, resource) = match &hosted {
            Some(hosted) => (hosted.name, hosted.resource),
            None if service == SCHEDULER => (SCHEDULER, "pods"),
            None => return Err(format!("there is no service {service}")),
        };
        let client = self.simulation.client(&instance, name);
        let host = Host::simulated(name, &instance, CancellationToken::new());
        let events = Recorder::new(client.clone(), name, &instance);
        let replica = Replica::announce(host, client, events, resource);
        self.simulation.spawn(&instance, serve(hosted, replica));
        Ok(())
    }
}

/// Returns kind and name of an object that was created.
fn created(entry: &Entry) -> Option<(String, String)> {
    match entry {
        Entry::Changed(change) if change.before.is_none() => {
            Some((change.kind.kind.to_lowercase(), short(&change.key)))
        }
        _ => None,
    }
}

/// Runs a controller, or the scheduler, until its process is killed.
async fn serve(hosted: Option<Configured>, replica: Replica) {
    let ended = match hosted {
        Some(hosted) => hosted.run(replica, runtime::Settings::default()).await,
        None => scheduler::run(replica, scheduler::Settings::default()).await,
    };
    ended.unwrap();
}

/// Returns service and instance of a process: `scheduler` is the instance 0 of the scheduler.
fn instance(name: &str) -> (String, String) {
    if name == kubelet::NAME {
        return (name.to_owned(), name.to_owned());
    }
    match name.rsplit_once('-') {
        Some((service, number)) if number.parse::<u8>().is_ok() => {
            (service.to_owned(), name.to_owned())
        }
        _ => (name.to_owned(), format!("{name}-0")),
    }
}
