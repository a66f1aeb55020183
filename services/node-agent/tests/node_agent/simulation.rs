//! A simulated Pod: a world in which plans are executed and time advances on request.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use setpoint_model::time::{after, seconds_after};
use setpoint_node_agent::{
    Action, AssignedPod, Ending, PostStart, ProbeResults, Runs, World, plan, status,
};
use setpoint_proto::core::{Container, ContainerStatus, Pod};
use setpoint_runtime::{
    self as runtime, ContainerConfig, ContainerId, Exit, Sandbox, SandboxConfig, State,
};

/// The message of a Pod that its node ends.
pub const ENDING: &str = "The node was low on resource: memory. ";

pub const IP: Ipv4Addr = Ipv4Addr::new(10, 1, 2, 3);

pub struct Simulation {
    pub world: World,
    /// All executed actions, in order.
    pub done: Vec<Action>,
    /// Number of status updates.
    pub status_updates: usize,
    /// The state of the postStart hooks of containers that start.
    pub post_start: Option<PostStart>,
}

/// Returns a new Pod with these containers, bound to a node.
pub fn pod(policy: &str, init: &[&str], main: &[&str]) -> Pod {
    let container = |name: &&str| Container {
        name: (*name).to_owned(),
        image: "nginx:1.25".into(),
        ..Container::default()
    };
    let mut pod = Pod::default();
    pod.metadata.namespace = "default".into();
    pod.metadata.name = "web".into();
    pod.metadata.uid = "uid-1".into();
    pod.metadata.generation = 1;
    pod.spec.node_name = "node".into();
    pod.spec.restart_policy = policy.into();
    pod.spec.init_containers = init.iter().map(container).collect();
    pod.spec.containers = main.iter().map(container).collect();
    pod.status.phase = "Pending".into();
    pod.status.qos_class = "BestEffort".into();
    pod
}

impl Simulation {
    pub fn of(object: Pod) -> Self {
        let world = World {
            now: Timestamp::from_second(1_000_000).unwrap(),
            instant: Instant::now(),
            pod: Some(AssignedPod {
                object,
                is_static: false,
                resize: None,
                host_ip: "10.1.2.1".into(),
                allocatable: Arc::default(),
                admission: Ok(Some(IP)),
                runtime: "fake",
                scheme: "fake".to_owned(),
                runs: Runs::Images,
                mounts: false,
            }),
            sandboxes: Vec::new(),
            waiting_reasons: BTreeMap::new(),
            resize_error: None,
            probes: BTreeMap::new(),
            post_starts: BTreeMap::new(),
            held: BTreeSet::new(),
            ending: None,
            volumes_checked: None,
        };
        Self {
            world,
            done: Vec::new(),
            status_updates: 0,
            post_start: None,
        }
    }

    pub fn pod(&mut self) -> &mut Pod {
        &mut self.world.pod.as_mut().expect("the Pod exists").object
    }

    /// Executes plans until one is empty, as the agent does, then updates the status. Returns the requeue delay.
    pub fn converge(&mut self) -> Option<Duration> {
        let mut passes = 0;
        let again = loop {
            let plan = plan(&self.world);
            if plan.is_empty() {
                break plan.again;
            }
            passes += 1;
            assert!(passes < 16, "plans do not converge: {:?}", plan.steps);
            plan.steps
                .into_iter()
                .for_each(|step| self.execute(step.action));
        };
        self.update_status();
        assert!(
            plan(&self.world).is_empty() && status(&self.world).is_none(),
            "a second plan is empty"
        );
        again
    }

    fn update_status(&mut self) {
        if let Some(status) = status(&self.world) {
            self.status_updates += 1;
            self.pod().status = status;
        }
    }

    pub fn execute(&mut self, action: Action) {
        self.done.push(action.clone());
        match action {
            Action::Admit => {
                self.world.pod.as_mut().expect("the Pod exists").admission = Ok(Some(IP))
            }
            Action::Allocate => {
                let pod = self.world.pod.as_mut().expect("the Pod exists");
                let resize = pod.resize.take().expect("it is resized");
                resize.demand.allocation.apply(&mut pod.object.spec);
            }
            Action::Resize(id) => {
                let pod = self.world.pod.as_ref().expect("the Pod exists");
                let resources = pod
                    .container(&id.name)
                    .expect("it is known")
                    .resources
                    .clone();
                self.container(&id).resources = Some(resources);
            }
            Action::ResizePod(resources) => {
                let mut sandboxes = self.world.sandboxes.iter_mut();
                let own = sandboxes.next().expect("it has a sandbox");
                own.config.resources = Some(resources);
            }
            Action::RunSandbox { ip } => self.run_sandbox(ip),
            Action::Start {
                name,
                attempt,
                backoff,
            } => self.start(name, attempt, backoff),
            Action::UpdateVolumes => self.world.volumes_checked = Some(self.world.instant),
            Action::Probe(id) => drop(self.world.probes.insert(id, ProbeResults::default())),
            Action::PreStop { id, .. } => drop(self.world.held.insert(id)),
            Action::Kill { id, grace, .. } | Action::Stop { id, grace } => {
                let deadline = after(self.world.now, grace);
                let container = self.container(&id);
                if let State::Running { stopping, .. } = &mut container.state {
                    *stopping = Some(deadline);
                }
            }
            Action::Remove(id) => {
                let mut sandboxes = self.world.sandboxes.iter_mut();
                sandboxes
                    .by_ref()
                    .for_each(|sandbox| sandbox.containers.retain(|known| known.id != id));
            }
            Action::UpdateStatus => self.update_status(),
            Action::RemoveSandbox(uid) => {
                let gone = |sandbox: &Sandbox| sandbox.config.uid == uid;
                assert!(
                    self.world
                        .sandboxes
                        .iter()
                        .filter(|s| gone(s))
                        .all(|s| s.alive().next().is_none())
                );
                self.world.sandboxes.retain(|sandbox| !gone(sandbox));
            }
            Action::Delete if self.pod().metadata.finalizers.is_empty() => self.world.pod = None,
            Action::Delete => self.pod().metadata.deletion_grace_period_seconds = Some(0),
        }
    }

    /// Creates the sandbox, or recreates a lost one.
    fn run_sandbox(&mut self, ip: Ipv4Addr) {
        let mut all = self.world.sandboxes.iter_mut();
        match all.find(|sandbox| sandbox.config.uid == "uid-1") {
            Some(lost) => (lost.ready, lost.id) = (true, format!("{}+", lost.id)),
            None => self.add_sandbox("uid-1", ip),
        }
    }

    /// Marks the sandboxes as lost; their containers keep running.
    pub fn lose_sandbox(&mut self) {
        self.world
            .sandboxes
            .iter_mut()
            .for_each(|sandbox| sandbox.ready = false);
    }

    pub fn add_sandbox(&mut self, uid: &str, ip: Ipv4Addr) {
        let config = SandboxConfig {
            namespace: "default".into(),
            name: "web".into(),
            uid: uid.into(),
            ip,
            ..SandboxConfig::default()
        };
        let containers = Vec::new();
        self.world.sandboxes.push(Sandbox {
            config,
            id: uid.into(),
            ready: true,
            containers,
        });
    }

    fn start(&mut self, name: String, attempt: u32, backoff: Duration) {
        let (since, round) = (self.world.now, self.world.round());
        let hook = match self.has_post_start(&name) {
            true => self.post_start,
            false => None,
        };
        if let Some(state) = hook {
            let (uid, name) = ("uid-1".into(), name.clone());
            let id = ContainerId { uid, name, attempt };
            self.world.post_starts.insert(id, state);
        }
        let pod = self.world.pod.as_ref().expect("the Pod exists");
        let own = pod.container(&name);
        let resources = own.map_or_else(Default::default, |own| own.resources.clone());
        let spec = &self.pod().spec;
        let mut added = spec.ephemeral_containers.iter();
        let is_added = added.any(|added| added.ephemeral_container_common.name == name);
        let before = spec.init_containers.iter();
        let before = before.take_while(|init| init.name != name && !is_added);
        let init = before.filter(|init| init.restart_policy.is_none());
        let init: Vec<_> = init.map(|init| init.name.clone()).collect();
        let sandbox = self
            .world
            .sandboxes
            .iter_mut()
            .find(|sandbox| sandbox.config.uid == "uid-1");
        let sandbox = sandbox.expect("a container starts in its sandbox");
        assert!(
            sandbox
                .attempts(&name)
                .all(|known| matches!(known.state, State::Exited(_))),
            "two attempts run concurrently"
        );
        let prepared = |init: &String| {
            let latest = sandbox
                .latest(init)
                .filter(|latest| latest.sandbox == sandbox.id && latest.round == round);
            matches!(latest.map(|latest| &latest.state), Some(State::Exited(exit)) if exit.code == 0)
        };
        assert!(
            init.iter().all(prepared),
            "{name} starts in an initialized sandbox"
        );
        let id = ContainerId {
            uid: "uid-1".into(),
            name,
            attempt,
        };
        assert!(
            sandbox.containers.iter().all(|known| known.id != id),
            "attempt numbers are unique"
        );
        let config = ContainerConfig {
            id,
            image: "nginx:1.25".into(),
            backoff,
            round,
            resources,
            ..ContainerConfig::default()
        };
        let stopping = None;
        let mut container = runtime::Container::starting(&config);
        container.state = State::Running { since, stopping };
        container.sandbox.clone_from(&sandbox.id);
        sandbox.containers.push(container);
        sandbox.containers.sort_by(|a, b| a.id.cmp(&b.id));
    }

    fn has_post_start(&mut self, name: &str) -> bool {
        let mut all = self.pod().spec.containers.iter();
        let found = all.find(|container| container.name == name);
        let lifecycle = found.and_then(|container| container.lifecycle.as_ref());
        lifecycle.is_some_and(|lifecycle| lifecycle.post_start.is_some())
    }

    fn container(&mut self, id: &ContainerId) -> &mut runtime::Container {
        let mut all = self
            .world
            .sandboxes
            .iter_mut()
            .flat_map(|sandbox| &mut sandbox.containers);
        all.find(|container| container.id == *id)
            .expect("it is known")
    }

    /// Ends a container if it runs.
    pub fn exit(&mut self, name: &str, code: i32) {
        let (now, instant) = (self.world.now, self.world.instant);
        let mut all = self
            .world
            .sandboxes
            .iter_mut()
            .flat_map(|sandbox| &mut sandbox.containers);
        let running = all.find_map(|container| match container.state {
            State::Running { since, .. } if container.id.name == name => Some((container, since)),
            _ => None,
        });
        if let Some((container, since)) = running {
            container.state = State::Exited(Exit {
                observed: Some(instant),
                ..Exit::new(code, since, now)
            });
        }
    }

    pub fn advance(&mut self, seconds: u64) {
        self.world.now += Duration::from_secs(seconds);
        self.world.instant += Duration::from_secs(seconds);
    }

    /// Lets the node end the Pod, unless it has decided on that before.
    pub fn end(&mut self, grace: u64) {
        let since = self.world.now;
        self.world.ending.get_or_insert_with(|| Ending {
            disrupts: true,
            reason: "Evicted",
            message: ENDING.into(),
            grace: Duration::from_secs(grace),
            since,
        });
    }

    pub fn delete(&mut self, grace: i64) {
        let now = self.world.now;
        let meta = &mut self.pod().metadata;
        meta.deletion_timestamp = Some(seconds_after(now, grace).into());
        meta.deletion_grace_period_seconds = Some(grace);
    }

    pub fn reported(&self, name: &str) -> &ContainerStatus {
        self.world.reported(name).expect("its status was reported")
    }

    /// Returns the phase and whether the Pod is ready.
    pub fn summary(&mut self) -> (String, bool) {
        let status = &self.pod().status;
        (
            status.phase.clone(),
            setpoint_model::condition::is_true(&status.conditions, "Ready"),
        )
    }
}
