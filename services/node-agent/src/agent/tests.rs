use std::net::Ipv4Addr;

use parking_lot::Mutex;
use setpoint_controller::queue::Limiter;
use setpoint_controller::{Client, client};

use super::*;
use crate::events::Events;
use crate::runtime::{
    ContainerConfig, ContainerId, Error as RuntimeError, ImageOrigin, Log, LogOptions, Sandbox,
    SandboxConfig,
};

/// A runtime that panics when asked for the Pod `bad`, and records every Pod that it is asked for.
#[derive(Default)]
struct Panics {
    asked: Mutex<Vec<String>>,
}

impl Runtime for Panics {
    const NAME: &'static str = "panics";
    const RUNS_COMMANDS: bool = false;
    const RUNS_IMAGES: bool = false;

    fn sandboxes(&self, pod: &Key) -> Vec<Sandbox> {
        self.asked.lock().push(pod.name.clone());
        assert!(pod.name != "bad", "thrown by a test");
        Vec::new()
    }

    fn pods(&self) -> Vec<Key> {
        Vec::new()
    }

    async fn run_sandbox(&self, _: SandboxConfig) -> Result<(), RuntimeError> {
        Ok(())
    }

    async fn start(&self, _: ContainerConfig) -> Result<ImageOrigin, RuntimeError> {
        Ok(ImageOrigin::Unused)
    }

    async fn stop(&self, _: &ContainerId, _: Duration) -> Result<(), RuntimeError> {
        Ok(())
    }

    async fn log(&self, id: &ContainerId, _: &LogOptions) -> Result<Log, RuntimeError> {
        Err(RuntimeError::Unknown(id.to_string()))
    }

    async fn remove(&self, _: &ContainerId) -> Result<(), RuntimeError> {
        Ok(())
    }

    async fn remove_sandbox(&self, _: &str) -> Result<(), RuntimeError> {
        Ok(())
    }
}

fn agent() -> Agent<Panics> {
    let settings = client::Settings {
        address: "http://127.0.0.1:1".into(),
        ..client::Settings::default()
    };
    let gateway = Client::connect(&settings, "test").unwrap();
    let queue = Queue::new("pods", Limiter::default());
    let capacity = crate::admission::NodeCapacity {
        requests: model::Requests::default(),
        pods: 1,
        network: Ipv4Addr::LOCALHOST,
    };
    Agent {
        pods: gateway.informer::<PodView>().reader(),
        executor: Executor {
            runtime: Panics::default(),
            gateway,
            events: Events::new(None),
            log: crate::runtime::LogLimits::default(),
        },
        nodes: HashMap::new(),
        admission: Admission::new([("node".to_owned(), capacity)]),
        barrier: Barrier::default(),
        decision_log: DecisionLog::new("node-agent", "test", "pods"),
        queue,
        rounds: Arc::new(Reconciles::new("node-agent-test", 1)),
    }
}

/// A panic in one reconcile ends neither the worker nor the process, and the Pod is retried.
#[tokio::test(start_paused = true)]
async fn a_panic_in_one_reconcile_is_retried_and_other_pods_are_reconciled() {
    let agent = Arc::new(agent());
    for name in ["bad", "good"] {
        agent.queue.add(Key::new("default", name), None);
    }
    let shutdown = CancellationToken::new();
    let worker = tokio::spawn(Arc::clone(&agent).work(shutdown.clone()));
    let asked = |name: &str| {
        let asked = agent.executor.runtime.asked.lock();
        asked.iter().filter(|pod| *pod == name).count()
    };
    let seen = async {
        while asked("bad") < 3 || asked("good") < 1 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let seen = tokio::time::timeout(Duration::from_secs(60), seen).await;
    seen.expect("the worker continues");
    assert!(!worker.is_finished());
    shutdown.cancel();
    worker.await.unwrap();
}
