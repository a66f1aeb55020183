//! The reconciler of Pods.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use setpoint_controller::{Cascade, Client, Inputs, Outcome, Plan, Receipt, Reconciler, View as _};
use setpoint_model::{Key, Meta, pod as model};
use setpoint_proto::ApiError;
use setpoint_proto::core::{Pod, PodStatus};
use setpoint_runtime::Runtime;
use setpoint_task::catch_unwind;

use crate::metrics;
use crate::node::admission::Admission;
use crate::node::{Node, Pods};
use crate::pod::act::{self, Executor};
use crate::pod::demand::{Allocation, Demand};
use crate::pod::image_commands::ImageCommands;
use crate::pod::plan::{Action, plan};
use crate::pod::rejection::{self, AdmitResult};
use crate::pod::resize;
use crate::pod::status::status;
use crate::pod::sysctls;
use crate::pod::view::PodView;
use crate::pod::world::{AssignedPod, Runs, WaitingReason, World};

/// The requeue delay of a Pod with a container that cannot be started as configured, for example because a ConfigMap is
/// missing, or that cannot be resized.
const CONFIG_RETRY: Duration = Duration::from_secs(10);

/// Reconciles the Pods of the nodes that this process hosts.
pub struct Agent<R> {
    /// Executes planned actions.
    pub executor: Executor<R>,
    /// The nodes of this process and their Pods.
    pub pods: Arc<Pods<R>>,
    /// The admitted Pods and their addresses.
    pub admission: Arc<Admission>,
    /// The commands that run in place of images.
    pub images: ImageCommands,
    /// Whether the Pods of the API are known. Until then only static Pods are reconciled.
    pub knows_api: AtomicBool,
    /// Whether the addresses of Pods are of a range that the API assigns to the node.
    pub takes_range: bool,
}

/// The observation of a Pod.
pub struct Observed {
    /// The Pod's metadata; only its key if it is gone.
    meta: Meta,
    world: World,
}

impl<R: Runtime> Reconciler for Agent<R> {
    type Object = Pod;
    type World = Observed;
    type Action = Action;

    /// No Pod needs as many to get from nothing to running.
    const PASSES: usize = 16;
    const CONCURRENCY: usize = 1;

    /// Restores the admission of Pods that an earlier process of this agent admitted.
    fn begin(&self) {
        for view in self.pods.all() {
            // A Pod that cannot be restored must not keep the others from running.
            let _ = catch_unwind("restore", || self.restore(&view.pod()));
        }
        self.knows_api.store(true, Ordering::Release);
    }

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<Observed> {
        let view = self.pods.get(key);
        if !self.can_observe(view.as_deref()) {
            return None;
        }
        let ours = view.and_then(|view| self.pods.nodes.get(&view.node).map(|node| (view, node)));
        let mut sandboxes = self.executor.runtime.sandboxes(key);
        self.executor.hooks.mark_stopping(&mut sandboxes);
        if ours.is_none() && sandboxes.is_empty() {
            return None;
        }
        let gone = || Meta {
            key: key.clone(),
            ..Meta::default()
        };
        let meta = ours.as_ref().map(|(view, _)| view.meta().clone());
        let uid = meta
            .as_ref()
            .map(|meta| meta.uid.as_str())
            .unwrap_or_default();
        let pod = ours.map(|(view, node)| self.assigned(&view, node));
        let metadata = pod.as_ref().map(|pod| &pod.object.metadata);
        let world = World {
            now: inputs.now,
            instant: inputs.instant,
            ending: self.pods.endings.get(uid),
            volumes_checked: metadata.and_then(|metadata| self.executor.updates.last(metadata)),
            pod,
            sandboxes,
            waiting_reasons: BTreeMap::new(),
            resize_error: None,
            probes: self.executor.probes.results(uid),
            post_starts: self.executor.hooks.post_starts(uid),
            held: self.executor.hooks.held(uid),
        };
        let meta = meta.unwrap_or_else(gone);
        Some(Observed { meta, world })
    }

    fn meta(observed: &Observed) -> &Meta {
        &observed.meta
    }

    fn plan(observed: &Observed) -> Plan<Action> {
        plan(&observed.world)
    }

    async fn act(
        &self,
        _: &Client,
        Observed { meta, world }: &Observed,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        match (action, &world.pod) {
            (Action::Admit, Some(pod)) => return self.admit(&meta.key, &pod.object),
            (Action::Allocate, Some(pod)) => return self.allocate(&meta.key, pod),
            (Action::UpdateStatus, Some(pod)) if pod.is_static => {
                if let Some(status) = status(world) {
                    self.set_status(pod, status);
                }
                return Ok(Receipt::none());
            }
            (Action::Delete, Some(pod)) if pod.is_static => {
                self.finish(&pod.object);
                return Ok(Receipt::none());
            }
            _ => {}
        }
        let receipt = self.executor.execute(world, action).await?;
        if let Action::RemoveSandbox(uid) = action {
            self.wake(&self.admission.release(&meta.key, uid));
        }
        Ok(receipt)
    }

    fn status(observed: &Observed, outcome: &Outcome<Action>) -> Option<PodStatus> {
        let Some(error) = &outcome.failed else {
            return status(&observed.world);
        };
        let mut world = observed.world.clone();
        world.waiting_reasons.extend(WaitingReason::of_error(error));
        world.resize_error = act::resize_error(error);
        status(&world)
    }

    async fn update_status(
        &self,
        _: &Client,
        Observed { world, .. }: &Observed,
        status: PodStatus,
    ) -> Result<Receipt, ApiError> {
        let Some(pod) = &world.pod else {
            return Ok(Receipt::none());
        };
        if pod.is_static {
            self.set_status(pod, status);
            return Ok(Receipt::none());
        }
        let running = status.phase == "Running";
        let receipt = self.executor.update_status(pod, status).await?;
        if running {
            metrics::observe_pod_start(&pod.object, world.now);
        }
        Ok(receipt)
    }

    fn converged(observed: &Observed) -> bool {
        observed.world.has_converged()
    }

    fn retry_after(error: &ApiError) -> Option<Duration> {
        let known = WaitingReason::of_error(error).is_some() || act::resize_error(error).is_some();
        known.then_some(CONFIG_RETRY)
    }

    fn trace(observed: &Observed, _: &Outcome<Action>, cascade: &Cascade) {
        if let Some(pod) = &observed.world.pod {
            cascade.label("k8s.node.name", pod.object.spec.node_name.clone());
        }
    }
}

impl<R: Runtime> Agent<R> {
    /// Returns whether enough is known to decide on the Pod of a name: `view`, or none if there is none.
    fn can_observe(&self, view: Option<&PodView>) -> bool {
        if self.knows_api.load(Ordering::Acquire) {
            // Sandboxes without a Pod may be those of a manifest that was not read yet.
            return view.is_some() || self.pods.static_pods.is_complete();
        }
        let has_address = |pod: &Pod| pod.spec.host_network || !self.takes_range;
        view.is_some_and(|view| view.is_static() && has_address(&view.pod()))
    }

    fn assigned(&self, view: &PodView, node: &Node) -> AssignedPod {
        let mut object = view.pod();
        self.images.apply(&mut object.spec);
        let (key, uid) = (Key::of(&object.metadata), &object.metadata.uid);
        let resize = self.admission.resize_of(&key, uid, &object.spec);
        let resize = resize.map(|(allocated, resize)| {
            allocated.apply(&mut object.spec);
            resize
        });
        let demand = Demand::of(&object.spec);
        AssignedPod {
            admission: self.check(&key, node, &object, &demand, view.is_static()),
            object,
            is_static: view.is_static(),
            resize,
            host_ip: node.ip.to_string(),
            allocatable: Arc::clone(&node.allocatable),
            runtime: R::NAME,
            scheme: match node.runtime_name.as_str() {
                "" => R::NAME.to_owned(),
                named => named.to_owned(),
            },
            runs: Runs::of::<R>(),
            mounts: self.executor.runtime.mounts_volumes(),
        }
    }

    /// Checks a Pod against the rules and the state of its node. An admitted Pod stays, whatever becomes of the node.
    fn check(
        &self,
        key: &Key,
        node: &Node,
        pod: &Pod,
        demand: &Demand,
        is_static: bool,
    ) -> AdmitResult {
        sysctls::check(&pod.spec)?;
        rejection::check_os(pod)?;
        let uid = &pod.metadata.uid;
        let checked = self.admission.check(key, uid, &node.name, demand);
        match checked {
            Ok(Some(_)) => checked,
            Ok(None) | Err(_) => self.pods.state.borrow().admit(pod, is_static).and(checked),
        }
    }

    /// Admits a Pod, unless it is gone by now: then nothing would release it.
    fn admit(&self, key: &Key, pod: &Pod) -> Result<Receipt, ApiError> {
        let (uid, node) = (&pod.metadata.uid, &pod.spec.node_name);
        self.admission
            .admit(key, uid, node, &Demand::of(&pod.spec))?;
        if !self.pods.is_active(key, uid) {
            self.wake(&self.admission.release(key, uid));
        }
        Ok(Receipt::none())
    }

    /// Allocates the resources of a resize.
    fn allocate(&self, key: &Key, pod: &AssignedPod) -> Result<Receipt, ApiError> {
        if let Some(resize) = &pod.resize {
            let uid = &pod.object.metadata.uid;
            self.wake(&self.admission.resize(key, uid, &resize.demand)?);
        }
        Ok(Receipt::none())
    }

    /// Enqueues Pods whose resize may fit now, in the order in which they are to have the room.
    fn wake(&self, pods: &[Key]) {
        let known = pods.iter().filter_map(|key| self.pods.get(key));
        let mut known: Vec<_> = known.map(|view| view.pod()).collect();
        known.sort_by_cached_key(resize::rank);
        known
            .iter()
            .for_each(|pod| (self.executor.wake)(&Key::of(&pod.metadata)));
    }

    /// Keeps what runs already: the resources and addresses of static Pods, and the addresses of the sandboxes of
    /// others, which are not known yet. Called before there are workers.
    pub fn hold(&self) {
        let Some(node) = self.pods.nodes.keys().next() else {
            return;
        };
        let runtime = &self.pods.runtime;
        for key in runtime.pods() {
            for sandbox in runtime.sandboxes(&key) {
                let config = &sandbox.config;
                let ip = (!config.host_network).then_some(config.ip);
                self.admission.hold(&key, &config.uid, node, ip);
            }
        }
        for view in self.pods.static_pods.list() {
            self.restore(&view.pod());
        }
    }

    /// Sets the status of a static Pod. One that has ended leaves its room to others.
    fn set_status(&self, pod: &AssignedPod, status: PodStatus) {
        let (key, uid) = (Key::of(&pod.object.metadata), &pod.object.metadata.uid);
        self.executor.events.status_updated(&pod.object, &status);
        if self.pods.static_pods.set_status(&key, uid, status) {
            self.release(&key, uid);
        }
    }

    /// Forgets a static Pod that has stopped.
    fn finish(&self, pod: &Pod) {
        let (key, uid) = (Key::of(&pod.metadata), &pod.metadata.uid);
        self.release(&key, uid);
        self.pods.static_pods.finish(&key, uid);
    }

    fn release(&self, key: &Key, uid: &str) {
        self.pods.endings.forget(uid);
        self.wake(&self.admission.release(key, uid));
    }

    fn restore(&self, pod: &Pod) {
        let (key, uid) = (Key::of(&pod.metadata), &pod.metadata.uid);
        if model::is_terminal(pod) {
            self.admission.release(&key, uid);
            return;
        }
        let sandbox = self.pods.sandbox(&key, uid);
        if sandbox.is_some() || pod.status.start_time.is_some() {
            let mut spec = pod.spec.clone();
            Allocation::reported(pod).apply(&mut spec);
            let demand = Demand::of(&spec);
            // The address of the node is none of those that it assigns.
            let sandbox = sandbox.filter(|_| !pod.spec.host_network);
            let ip = sandbox.map(|sandbox| sandbox.config.ip);
            self.admission
                .restore(&key, uid, &pod.spec.node_name, &demand, ip);
        }
    }
}
