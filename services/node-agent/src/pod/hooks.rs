//! Lifecycle hooks in progress: postStart hooks, which delay what follows the start of a container, and preStop hooks,
//! which run within the grace period before a container is asked to stop.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_model::Key;
use setpoint_model::time::after;
use setpoint_proto::core::{LifecycleHandler, Pod};
use setpoint_runtime::{ContainerId, Runtime, Sandbox, State, Wake};
use setpoint_task::catch_panic;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use crate::pod::events::Events;
use crate::pod::handler::Target;
use crate::pod::health::PostStart;
use crate::pod::world::MIN_GRACE;

/// The hooks of the agent's containers.
#[derive(Default)]
pub struct Hooks {
    post_starts: Mutex<HashMap<ContainerId, (PostStart, Option<Task>)>>,
    pre_stops: Mutex<HashMap<ContainerId, PreStop>>,
}

/// The task of a hook, which ends with the table's entry.
type Task = AbortOnDropHandle<()>;

/// A preStop hook that runs or has ended.
struct PreStop {
    order: watch::Sender<Order>,
    ended: bool,
    _task: Task,
}

/// The time at which a container stops after its hook.
#[derive(Clone, Copy, PartialEq)]
struct Order {
    /// The end of the grace period.
    deadline: Timestamp,
    /// Whether it waits for others to stop first.
    held: bool,
}

/// A hook to run.
pub struct Run<R> {
    /// The container.
    pub target: Target<R>,
    /// The handler that is run.
    pub handler: LifecycleHandler,
    /// The Pod, for Events.
    pub pod: Arc<Pod>,
}

impl Hooks {
    /// Returns the postStart hooks of a Pod that have not succeeded.
    pub fn post_starts(&self, uid: &str) -> BTreeMap<ContainerId, PostStart> {
        let hooks = self.post_starts.lock();
        let own = hooks.iter().filter(|(id, _)| id.uid == uid);
        own.map(|(id, (state, _))| (id.clone(), *state)).collect()
    }

    /// Returns the containers of a Pod whose preStop hook has begun, and that are not to stop yet.
    pub fn held(&self, uid: &str) -> BTreeSet<ContainerId> {
        let hooks = self.pre_stops.lock();
        let own = hooks.iter().filter(|(id, _)| id.uid == uid);
        own.filter(|(_, hook)| hook.order.borrow().held)
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Marks containers that stop after their preStop hook as being stopped by the end of their grace period.
    pub fn mark_stopping(&self, sandboxes: &mut [Sandbox]) {
        let hooks = self.pre_stops.lock();
        if hooks.is_empty() {
            return;
        }
        let containers = sandboxes
            .iter_mut()
            .flat_map(|sandbox| &mut sandbox.containers);
        for container in containers {
            if let (State::Running { stopping, .. }, Some(hook)) =
                (&mut container.state, hooks.get(&container.id))
            {
                let Order { deadline, held } = *hook.order.borrow();
                if held {
                    continue;
                }
                *stopping = Some(stopping.map_or(deadline, |sooner| sooner.min(deadline)));
            }
        }
    }

    /// Announces the postStart hook of a container that is about to start.
    pub fn announce(&self, id: &ContainerId) {
        self.post_starts
            .lock()
            .insert(id.clone(), (PostStart::Running, None));
    }

    /// Runs the postStart hook of a container that has started.
    pub fn run_post_start<R: Runtime>(self: &Arc<Self>, run: Run<R>, events: &Events, wake: &Wake) {
        let (this, events, wake) = (Arc::clone(self), events.clone(), Arc::clone(wake));
        let id = run.target.id.clone();
        let task = tokio::spawn(async move {
            let id = &run.target.id;
            let ran = catch_panic("postStart", run.target.run_hook(&run.handler)).await;
            match ran.unwrap_or_else(|_| Err("panicked".to_owned())) {
                Ok(()) => drop(this.post_starts.lock().remove(id)),
                Err(error) => {
                    warn!(container = %id, error, "a postStart hook has failed");
                    events.failed_post_start(&run.pod, &id.name);
                    if let Some((state, _)) = this.post_starts.lock().get_mut(id) {
                        *state = PostStart::Failed;
                    }
                }
            }
            wake(&Key::of(&run.pod.metadata));
        });
        if let Some((_, kept)) = self.post_starts.lock().get_mut(&id) {
            *kept = Some(AbortOnDropHandle::new(task));
        }
    }

    /// Runs the preStop hook of a container, then stops it: once this is called without `held`, or at the end of
    /// `grace`. If the hook runs already, only its deadline is brought forward. Returns `false` if it has ended, so
    /// that the container can be stopped.
    pub fn run_pre_stop<R: Runtime>(
        self: &Arc<Self>,
        run: Run<R>,
        grace: Duration,
        held: bool,
        events: &Events,
    ) -> bool {
        let by = after(Timestamp::now(), grace);
        let id = run.target.id.clone();
        self.post_starts.lock().remove(&id);
        let mut hooks = self.pre_stops.lock();
        if let Some(hook) = hooks.get(&id) {
            hook.order.send_if_modified(|order| {
                let before = *order;
                order.deadline = by.min(order.deadline);
                order.held = held && order.held;
                *order != before
            });
            return !hook.ended;
        }
        let (order, watched) = watch::channel(Order { deadline: by, held });
        let (this, events) = (Arc::clone(self), events.clone());
        let task = tokio::spawn(async move {
            this.pre_stop(run, watched, &events).await;
        });
        let hook = PreStop {
            order,
            ended: false,
            _task: AbortOnDropHandle::new(task),
        };
        hooks.insert(id, hook);
        true
    }

    async fn pre_stop<R: Runtime>(
        &self,
        run: Run<R>,
        mut order: watch::Receiver<Order>,
        events: &Events,
    ) {
        let Target { id, runtime, .. } = &run.target;
        let hook = catch_panic("preStop", run.target.run_hook(&run.handler));
        let ran = tokio::select! {
            ran = hook => ran.unwrap_or_else(|_| Err("panicked".to_owned())),
            () = reached(&mut order) => {
                warn!(container = %id, "a preStop hook did not end in the grace period");
                Ok(())
            }
        };
        if let Err(error) = ran {
            warn!(container = %id, error, "a preStop hook has failed");
            events.failed_pre_stop(&run.pod, &id.name);
        }
        turn(&mut order).await;
        let left = left(order.borrow().deadline).max(MIN_GRACE);
        if let Some(hook) = self.pre_stops.lock().get_mut(id) {
            hook.ended = true;
        }
        if let Err(error) = runtime.stop(id, left).await {
            warn!(container = %id, %error, "cannot stop the container after its preStop hook");
            // The next plan stops it.
            self.pre_stops.lock().remove(id);
        }
    }

    /// Ends the hooks of one container.
    pub fn forget(&self, id: &ContainerId) {
        self.post_starts.lock().remove(id);
        self.pre_stops.lock().remove(id);
    }

    /// Ends the hooks of all containers of a Pod.
    pub fn forget_pod(&self, uid: &str) {
        self.post_starts.lock().retain(|id, _| id.uid != uid);
        self.pre_stops.lock().retain(|id, _| id.uid != uid);
    }
}

/// Waits until a container may stop: nothing holds it any more, or its deadline is reached.
async fn turn(order: &mut watch::Receiver<Order>) {
    while order.borrow_and_update().held {
        let left = left(order.borrow().deadline);
        tokio::select! {
            () = tokio::time::sleep(left) => return,
            changed = order.changed() => if changed.is_err() {
                return;
            }
        }
    }
}

/// Waits until a deadline that may be brought forward.
async fn reached(order: &mut watch::Receiver<Order>) {
    loop {
        let left = left(order.borrow_and_update().deadline);
        tokio::select! {
            () = tokio::time::sleep(left) => return,
            changed = order.changed() => if changed.is_err() {
                return;
            }
        }
    }
}

fn left(deadline: Timestamp) -> Duration {
    Duration::try_from(deadline.duration_since(Timestamp::now())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use setpoint_proto::core::{Container, ExecAction, SleepAction};

    use super::*;
    use crate::pod::fake::{Fake, id};

    fn run(runtime: &Fake, handler: LifecycleHandler) -> Run<Fake> {
        Run {
            target: runtime.target(Container::default()),
            handler,
            pod: Arc::default(),
        }
    }

    fn command() -> LifecycleHandler {
        LifecycleHandler {
            exec: Some(ExecAction::default()),
            ..LifecycleHandler::default()
        }
    }

    fn sleep(seconds: i64) -> LifecycleHandler {
        LifecycleHandler {
            sleep: Some(SleepAction { seconds }),
            ..LifecycleHandler::default()
        }
    }

    async fn let_run() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_post_start_hook_is_forgotten_when_it_succeeds_and_remembered_when_it_fails() {
        let (runtime, hooks) = (Fake::new(), Arc::new(Hooks::default()));
        let (events, wake): (_, Wake) = (Events::new(None), Arc::new(|_| {}));
        for (code, expected) in [(0, None), (1, Some(PostStart::Failed))] {
            runtime.answer("", code);
            hooks.announce(&id());
            assert_eq!(hooks.post_starts("uid-1")[&id()], PostStart::Running);
            hooks.run_post_start(run(&runtime, command()), &events, &wake);
            let_run().await;
            assert_eq!(hooks.post_starts("uid-1").get(&id()).copied(), expected);
        }
        hooks.forget_pod("uid-1");
        assert!(hooks.post_starts("uid-1").is_empty());
    }

    /// Checks N4.
    #[tokio::test]
    async fn a_container_is_stopped_when_its_pre_stop_hook_has_ended() {
        let (runtime, hooks) = (Fake::new(), Arc::new(Hooks::default()));
        let (events, grace) = (Events::new(None), Duration::from_secs(30));
        assert!(hooks.run_pre_stop(run(&runtime, command()), grace, false, &events));
        let mut sandboxes = runtime.sandboxes(&Key::default());
        hooks.mark_stopping(&mut sandboxes);
        let State::Running { stopping, .. } = sandboxes[0].containers[0].state else {
            panic!("it runs");
        };
        assert!(
            stopping.is_some(),
            "it counts as being stopped from the start of its hook"
        );
        let_run().await;
        let stops = runtime.stops();
        assert!(
            stops.len() == 1 && stops[0] > Duration::from_secs(28),
            "{stops:?}"
        );
        assert!(
            !hooks.run_pre_stop(run(&runtime, command()), grace, false, &events),
            "it runs once"
        );
    }

    /// Checks N4.
    #[tokio::test]
    async fn a_sidecar_stops_after_its_hook_only_when_its_turn_has_come_or_its_grace_is_over() {
        for (grace, released) in [(Duration::from_secs(30), true), (Duration::ZERO, false)] {
            let (runtime, hooks) = (Fake::new(), Arc::new(Hooks::default()));
            let events = Events::new(None);
            hooks.run_pre_stop(run(&runtime, command()), grace, true, &events);
            if released {
                let_run().await;
                assert!(runtime.stops().is_empty() && hooks.held("uid-1").contains(&id()));
                let mut sandboxes = runtime.sandboxes(&Key::default());
                let before = sandboxes.clone();
                hooks.mark_stopping(&mut sandboxes);
                assert_eq!(sandboxes, before, "it is not being stopped yet");
                hooks.run_pre_stop(run(&runtime, command()), grace, false, &events);
                assert!(hooks.held("uid-1").is_empty());
            }
            while runtime.stops().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(runtime.commands(), 1, "its hook runs once");
        }
    }

    /// Checks N4.
    #[tokio::test]
    async fn a_pre_stop_hook_ends_with_the_grace_period_even_if_that_is_shortened() {
        let (runtime, hooks) = (Fake::new(), Arc::new(Hooks::default()));
        let events = Events::new(None);
        let long = Duration::from_secs(3600);
        assert!(hooks.run_pre_stop(run(&runtime, sleep(7200)), long, false, &events));
        let_run().await;
        assert!(runtime.stops().is_empty());
        assert!(hooks.run_pre_stop(run(&runtime, sleep(7200)), Duration::ZERO, false, &events));
        while runtime.stops().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(
            runtime.stops(),
            [MIN_GRACE],
            "it has two seconds after its hook"
        );
    }
}
