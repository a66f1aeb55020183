//! The reconcile loop, with a controller that keeps a number of copies of a ConfigMap.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use setpoint_controller::client::Preconditions;
use setpoint_controller::{
    Client, Controller, Inputs, Outcome, Plan, Reader, Receipt, Reconciler, View, Whole,
};
use setpoint_model::{Key, Meta, owner};
use setpoint_proto::apps::{ReplicaSet, ReplicaSetStatus};
use setpoint_proto::coordination::Lease;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, NAMESPACE_TERMINATING, Reason};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::leaders::server;
use crate::server::{Faults, Server, config_map, eventually, soon};

type Config = Whole<ConfigMap>;

/// Keeps `data.copies` copies of each ConfigMap with that key. Their names are random, as those of a ReplicaSet's Pods,
/// so that a reconcile on an old cache creates too many.
struct Copies {
    configs: Reader<Config>,
    reconciles: Counts,
}

/// The number of reconciles of each key.
pub type Counts = Arc<Mutex<BTreeMap<String, usize>>>;

struct World {
    origin: Arc<Config>,
    wanted: usize,
    copies: Vec<Arc<Config>>,
    seed: u64,
}

#[derive(Debug)]
enum Action {
    Create { name: String },
    Delete { key: Key, uid: String },
}

impl Reconciler for Copies {
    /// A ConfigMap has no status: `update_status` writes the number of replicas into its data.
    type Object = ReplicaSet;
    type World = World;
    type Action = Action;

    fn observe(&self, key: &Key, inputs: Inputs) -> Option<World> {
        *self.reconciles.lock().entry(key.name.clone()).or_default() += 1;
        assert_ne!(key.name, "poison");
        let origin = self.configs.get(key)?;
        let wanted = origin.object.data.get("copies")?.parse().ok()?;
        let copies = self.configs.owned_by(&origin.meta.uid);
        Some(World {
            origin,
            wanted,
            copies,
            seed: inputs.seed,
        })
    }

    fn meta(world: &World) -> &Meta {
        &world.origin.meta
    }

    fn plan(world: &World) -> Plan<Action> {
        let mut plan = Plan::default();
        for n in world.copies.len()..world.wanted {
            let name = format!("{}-{}-{n}", world.origin.meta.key.name, world.seed);
            plan.step(Action::Create { name }, "fewer copies than wanted");
        }
        for copy in world.copies.iter().skip(world.wanted) {
            let (key, uid) = (copy.meta.key.clone(), copy.meta.uid.clone());
            plan.step(Action::Delete { key, uid }, "more copies than wanted");
        }
        plan
    }

    async fn act(
        &self,
        gateway: &Client,
        world: &World,
        action: &Action,
    ) -> Result<Receipt, ApiError> {
        match action {
            Action::Create { name } => {
                let mut copy = config_map(name);
                copy.metadata.owner_references = vec![owner::reference_to(&world.origin.object)];
                Ok(gateway.create(&copy).await?.receipt())
            }
            Action::Delete { key, uid } => {
                let deleted = gateway.delete::<ConfigMap>(key, Preconditions::uid(uid), None);
                Ok(deleted.await?.receipt())
            }
        }
    }

    fn status(world: &World, outcome: &Outcome<Action>) -> Option<ReplicaSetStatus> {
        let known: usize = world.origin.object.data.get("there")?.parse().ok()?;
        let there = world.copies.len();
        let replicas = i32::try_from(there).ok()?;
        (there != known && outcome.done == 0).then(|| ReplicaSetStatus {
            replicas,
            ..ReplicaSetStatus::default()
        })
    }

    async fn update_status(
        &self,
        gateway: &Client,
        world: &World,
        status: ReplicaSetStatus,
    ) -> Result<Receipt, ApiError> {
        let mut origin = world.origin.object.clone();
        let there = status.replicas.to_string();
        origin.data.insert("there".into(), there);
        Ok(gateway.update(&origin).await?.receipt())
    }
}

fn key_of(config: &Config) -> Option<Key> {
    let key = &config.meta().key;
    match &config.meta.owner {
        Some(owner) => Some(Key::new(key.namespace.clone(), owner.name.clone())),
        None => Some(key.clone()),
    }
}

pub struct Process {
    pub reconciles: Counts,
    shutdown: CancellationToken,
    task: JoinHandle<()>,
}

impl Process {
    pub fn start(server: &Server, instance: &'static str) -> Self {
        let gateway = server.client(instance);
        let configs = gateway.informer::<Config>();
        let reconciles = Counts::default();
        let copies = Copies {
            configs: configs.reader(),
            reconciles: reconciles.clone(),
        };
        let controller = Controller::new("copies", copies, gateway).watches(configs, key_of);
        let shutdown = CancellationToken::new();
        let run = controller.run(instance, shutdown.clone());
        let task = tokio::spawn(async move { run.await.unwrap() });
        Self {
            reconciles,
            shutdown,
            task,
        }
    }

    pub async fn stop(self) {
        self.shutdown.cancel();
        soon(self.task).await.unwrap();
    }
}

pub fn origin(name: &str, copies: usize) -> ConfigMap {
    let mut origin = config_map(name);
    origin.data.insert("copies".into(), copies.to_string());
    origin.data.insert("there".into(), "0".into());
    origin
}

pub fn copies(server: &Server) -> usize {
    let all = server.all::<ConfigMap>();
    all.iter()
        .filter(|config| !config.metadata.owner_references.is_empty())
        .count()
}

pub fn reported(server: &Server, name: &str) -> Option<String> {
    server
        .get::<ConfigMap>("default", name)?
        .data
        .get("there")
        .cloned()
}

#[tokio::test(start_paused = true)]
async fn the_world_becomes_as_declared_and_the_status_says_so() {
    let server = server().await;
    let process = Process::start(&server, "copies-0");
    server.put(&origin("a", 100));
    eventually("all are there", async || {
        reported(&server, "a").as_deref() == Some("100")
    })
    .await;
    assert_eq!(
        (copies(&server), server.calls("Create")),
        (100, 101),
        "and the Lease"
    );

    let mut fewer = server.get::<ConfigMap>("default", "a").unwrap();
    fewer.data.insert("copies".into(), "3".into());
    server.put(&fewer);
    eventually("few are left", async || {
        reported(&server, "a").as_deref() == Some("3")
    })
    .await;
    process.stop().await;
    assert_eq!(copies(&server), 3);
}

/// Checks I6, R1, R2.
#[tokio::test(start_paused = true)]
async fn a_cache_that_lags_for_ten_minutes_makes_nothing_twice() {
    let server = server().await;
    let process = Process::start(&server, "copies-0");
    sleep(Duration::from_secs(1)).await;
    // The cache has the origin but not the copies, and a relist hangs.
    server.set_faults(Faults {
        mute: Some(("configmaps", server.revision() + 1)),
        hang: vec!["Watch"],
        ..Faults::default()
    });
    server.put(&origin("a", 3));
    sleep(Duration::from_secs(600)).await;
    assert_eq!(copies(&server), 3);
    server.set_faults(Faults::default());
    let all_there = async || reported(&server, "a").as_deref() == Some("3");
    eventually("all are seen", all_there).await;
    assert_eq!(copies(&server), 3);
    process.stop().await;
}

#[tokio::test(start_paused = true)]
async fn changes_that_a_round_has_waited_for_make_no_round_of_their_own() {
    let server = server().await;
    let process = Process::start(&server, "copies-0");
    sleep(Duration::from_secs(1)).await;
    let before = server.revision();
    let mute_after = |revision| Faults {
        mute: Some(("configmaps", revision)),
        ..Faults::default()
    };
    server.set_faults(mute_after(before + 1));
    let mut origin = origin("a", 3);
    origin.data.insert("there".into(), "3".into());
    server.put(&origin);
    eventually("all are made", async || copies(&server) == 3).await;
    // The first of three writes wakes the key, whose reconcile waits for the others.
    server.set_faults(mute_after(before + 2));
    sleep(Duration::from_millis(50)).await;
    server.set_faults(Faults::default());
    sleep(Duration::from_secs(1)).await;
    let reconciles = process.reconciles.lock()["a"];
    assert_eq!(reconciles, 2, "create, then nothing left");
}

/// Checks I9.
#[tokio::test(start_paused = true)]
async fn at_the_start_each_object_is_looked_at_once() {
    let server = server().await;
    for n in 0..20 {
        server.put(&origin(&format!("o{n}"), 0));
    }
    let process = Process::start(&server, "copies-0");
    eventually("all were looked at", async || {
        process.reconciles.lock().len() == 20
    })
    .await;
    sleep(Duration::from_secs(1)).await;
    assert!(
        process
            .reconciles
            .lock()
            .values()
            .all(|&reconciles| reconciles == 1)
    );
}

/// Checks R4.
#[tokio::test(start_paused = true)]
async fn a_plan_that_is_bound_to_fail_costs_one_call_per_round() {
    let server = server().await;
    let process = Process::start(&server, "copies-0");
    eventually("it leads", async || server.calls("Create") == 1).await;
    let refusal = ApiError::new(Reason::Forbidden, "exceeded quota");
    server.set_faults(Faults {
        refuse: Some(("Create", refusal)),
        ..Faults::default()
    });
    server.put(&origin("a", 500));
    sleep(Duration::from_secs(10)).await;
    let (calls, reconciles) = (server.calls("Create") - 1, process.reconciles.lock()["a"]);
    assert!(
        reconciles > 3 && reconciles < 15 && calls == reconciles,
        "{calls} calls, {reconciles} reconciles"
    );
}

/// Checks RF9: a write that validation refuses is not repeated before the object changes, but for one a quarter of an
/// hour.
#[tokio::test(start_paused = true)]
async fn what_validation_always_refuses_is_hardly_repeated() {
    let server = server().await;
    let process = Process::start(&server, "copies-0");
    eventually("it leads", async || server.calls("Create") == 1).await;
    let refusal = ApiError::new(Reason::Invalid, "the address is in the loopback range");
    server.set_faults(Faults {
        refuse: Some(("Create", refusal)),
        ..Faults::default()
    });
    server.put(&origin("a", 1));
    sleep(Duration::from_secs(3)).await;
    let early = server.calls("Create") - 1;
    assert!((1..=2).contains(&early), "{early} calls in 3 s");
    sleep(Duration::from_secs(3600)).await;
    let calls = server.calls("Create") - 1;
    assert!((9..=25).contains(&calls), "{calls} calls in an hour");
    // A change is tried at once.
    server.put(&origin("a", 2));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(server.calls("Create") - 1, calls + 1);
    process.stop().await;
}

/// Checks K9: creates in a namespace that is being deleted are not retried.
#[tokio::test(start_paused = true)]
async fn in_a_namespace_that_is_being_deleted_no_create_is_repeated() {
    let server = server().await;
    let process = Process::start(&server, "copies-0");
    eventually("it leads", async || server.calls("Create") == 1).await;
    let cause = StatusCause {
        reason: NAMESPACE_TERMINATING.into(),
        ..StatusCause::default()
    };
    let details = StatusDetails {
        causes: vec![cause],
        ..StatusDetails::default()
    };
    let refusal = ApiError::new(Reason::Forbidden, "it is being terminated");
    server.set_faults(Faults {
        refuse: Some(("Create", refusal.with_details(details))),
        ..Faults::default()
    });
    server.put(&origin("a", 500));
    sleep(Duration::from_secs(60)).await;
    let (calls, reconciles) = (server.calls("Create") - 1, process.reconciles.lock()["a"]);
    assert_eq!((calls, reconciles), (1, 1));
    process.stop().await;
}

/// Checks R3, L7.
#[tokio::test(start_paused = true)]
async fn a_standby_completes_the_work_of_the_former_leader() {
    let server = server().await;
    let first = Process::start(&server, "copies-0");
    eventually("it leads", async || server.calls("Create") == 1).await;
    let second = Process::start(&server, "copies-1");
    sleep(Duration::from_secs(1)).await;
    // The cache of the standby does not have the copies when its term begins.
    server.set_faults(Faults {
        mute: Some(("configmaps", server.revision() + 1)),
        ..Faults::default()
    });
    server.put(&origin("a", 50));
    eventually("it is at it", async || copies(&server) > 0).await;
    first.task.abort();
    let begin = Instant::now();
    eventually("all are there", async || {
        reported(&server, "a").as_deref() == Some("50")
    })
    .await;
    server.set_faults(Faults::default());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(copies(&server), 50);
    assert!(begin.elapsed() < Duration::from_secs(80));
    second.stop().await;
}

/// Checks L4.
#[tokio::test(start_paused = true)]
async fn a_fenced_write_ends_the_term() {
    let server = server().await;
    let process = Process::start(&server, "copies-0");
    sleep(Duration::from_secs(1)).await;
    // Another replica leads, which this one does not observe.
    server.set_faults(Faults {
        mute: Some(("leases.coordination.k8s.io", server.revision())),
        ..Faults::default()
    });
    let mut lease: Lease = server.get("setpoint-system", "copies").unwrap();
    lease.spec.holder_identity = Some("another".into());
    server.client("another").update(&lease).await.unwrap();
    for n in 0..10 {
        server.put(&origin(&format!("o{n}"), 5));
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(copies(&server), 0);
    let (looked_at, tried) = (process.reconciles.lock().len(), server.calls("Create") - 1);
    assert_eq!((looked_at, tried), (1, 1), "one refusal is enough");
    process.task.abort();
}

#[tokio::test(start_paused = true)]
async fn shutdown_finishes_the_round_and_releases_the_lease() {
    let server = server().await;
    let process = Process::start(&server, "copies-0");
    server.put(&origin("a", 200));
    eventually("it is at it", async || copies(&server) > 0).await;
    let begin = Instant::now();
    process.stop().await;
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "{:?}",
        begin.elapsed()
    );
    assert_eq!(copies(&server), 200);
    let lease: Lease = server.get("setpoint-system", "copies").unwrap();
    assert_eq!(lease.spec.holder_identity.as_deref(), Some(""));
}

/// Checks I11: a reconcile that panics fails, without an effect on other keys.
#[tokio::test(start_paused = true)]
async fn a_key_whose_reconciles_panic_backs_off_and_delays_no_other_key() {
    let server = server().await;
    let process = Process::start(&server, "copies-0");
    server.put(&origin("poison", 3));
    let begin = Instant::now();
    server.put(&origin("a", 3));
    eventually("the other is done", async || {
        reported(&server, "a").as_deref() == Some("3")
    })
    .await;
    assert!(begin.elapsed() < Duration::from_secs(1));
    sleep(Duration::from_secs(10)).await;
    let reconciles = process.reconciles.lock()["poison"];
    assert!((5..15).contains(&reconciles), "{reconciles} reconciles");
    process.stop().await;
}
