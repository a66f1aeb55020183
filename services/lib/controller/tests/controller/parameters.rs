//! The parameters of the runtime: batches, several plans for one reconcile, work without a Lease, the clock.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use setpoint_controller::{
    Client, Controller, Inputs, Plan, QueueHandle, Reader, Receipt, Reconciler, Whole,
};
use setpoint_model::{Key, Meta};
use setpoint_proto::ApiError;
use setpoint_proto::core::ConfigMap;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::leaders::server;
use crate::server::{Faults, Server, config_map, eventually};

type Config = Whole<ConfigMap>;

/// Writes `done` into each ConfigMap, and records which keys were observed together. Each must have been fetched
/// before.
struct Marks {
    configs: Reader<Config>,
    fetched: Mutex<HashSet<Key>>,
    observed: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Reconciler for Marks {
    type Object = ConfigMap;
    type World = Arc<Config>;
    type Action = &'static str;

    async fn fetch(&self, _: &Client, key: &Key, _: Timestamp) {
        self.fetched.lock().insert(key.clone());
    }

    fn observe(&self, key: &Key, _: Inputs) -> Option<Arc<Config>> {
        assert!(self.fetched.lock().remove(key), "{key} was not fetched");
        self.configs.get(key)
    }

    fn observe_all(&self, batch: &[(Key, Inputs)]) -> Vec<Option<Arc<Config>>> {
        let names = batch.iter().map(|(key, _)| key.name.clone());
        self.observed.lock().push(names.collect());
        let observed = batch.iter().map(|(key, inputs)| self.observe(key, *inputs));
        observed.collect()
    }

    fn meta(config: &Arc<Config>) -> &Meta {
        &config.meta
    }

    fn plan(config: &Arc<Config>) -> Plan<&'static str> {
        assert_ne!(config.meta.key.name, "poison");
        let mut plan = Plan::default();
        if !config.object.data.contains_key("done") {
            plan.step("Mark", "it has no mark");
        }
        plan
    }

    async fn act(
        &self,
        gateway: &Client,
        config: &Arc<Config>,
        _: &&'static str,
    ) -> Result<Receipt, ApiError> {
        let mut marked = config.object.clone();
        marked.data.insert("done".into(), "yes".into());
        Ok(gateway.update(&marked).await?.receipt())
    }
}

fn marked(server: &Server) -> usize {
    let all = server.all::<ConfigMap>();
    let marked = all.iter().filter(|config| config.data.contains_key("done"));
    marked.count()
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_observed_together_and_after_the_writes_of_the_one_before() {
    let server = server().await;
    let names = ["a", "b", "poison", "c", "d"];
    for name in names {
        server.put(&config_map(name));
    }
    let gateway = server.client("marks-0");
    let (configs, observed) = (gateway.informer::<Config>(), Arc::default());
    let marks = Marks {
        configs: configs.reader(),
        fetched: Mutex::default(),
        observed: Arc::clone(&observed),
    };
    let rank = move |key: &Key| names.iter().position(|name| *name == key.name);
    let controller = Controller::new("marks", marks, gateway)
        .for_(configs)
        .batches(3, rank)
        .unelected();
    // The cache does not see what the first batch writes.
    let mute = Some(("configmaps", server.revision()));
    server.set_faults(Faults {
        mute,
        ..Faults::default()
    });
    let stop = CancellationToken::new();
    let running = tokio::spawn(controller.run("marks-0", stop.clone()));
    eventually("the first batch is written", async || marked(&server) == 2).await;
    assert_eq!(*observed.lock(), [["a", "b", "poison"]]);
    // A relist is prevented, too.
    server.set_faults(Faults {
        mute,
        hang: vec!["Watch"],
        ..Faults::default()
    });
    sleep(Duration::from_millis(500)).await;
    assert_eq!(marked(&server), 2, "the second one waits");
    server.set_faults(Faults::default());
    eventually("the others are written", async || marked(&server) == 4).await;
    assert_eq!(observed.lock()[1][..2], ["c", "d"]);
    sleep(Duration::from_secs(5)).await;
    let all = observed.lock().concat();
    let again = all.iter().filter(|name| *name == "poison").count();
    assert!(again > 3, "a panic delays its own key alone");
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// Climbs to the third step, one plan at a time, and waits there for the clock.
struct Stairs {
    meta: Meta,
    climbed: Mutex<Vec<u8>>,
    reconciles: Mutex<usize>,
}

struct Position {
    meta: Meta,
    step: u8,
    now: Timestamp,
}

impl Reconciler for Stairs {
    type Object = ConfigMap;
    type World = Position;
    type Action = u8;

    const PASSES: usize = 16;
    const CONCURRENCY: usize = 1;

    fn begin(&self) {
        self.climbed.lock().clear();
    }

    fn observe(&self, _: &Key, inputs: Inputs) -> Option<Position> {
        let step = self.climbed.lock().last().copied().unwrap_or_default();
        Some(Position {
            meta: self.meta.clone(),
            step,
            now: inputs.now,
        })
    }

    fn observe_all(&self, batch: &[(Key, Inputs)]) -> Vec<Option<Position>> {
        *self.reconciles.lock() += 1;
        let observed = batch.iter().map(|(key, inputs)| self.observe(key, *inputs));
        observed.collect()
    }

    fn meta(position: &Position) -> &Meta {
        &position.meta
    }

    fn plan(position: &Position) -> Plan<u8> {
        let mut plan = Plan::default();
        let top = if position.now > Timestamp::UNIX_EPOCH {
            6
        } else {
            4
        };
        for next in [position.step + 1, position.step + 2] {
            if next <= top {
                plan.step(next, "it is not at the top");
            }
        }
        plan
    }

    async fn act(&self, _: &Client, _: &Position, step: &u8) -> Result<Receipt, ApiError> {
        // Later steps are faster: their order is kept nevertheless.
        sleep(Duration::from_millis(100 / u64::from(*step))).await;
        self.climbed.lock().push(*step);
        Ok(Receipt::none())
    }
}

#[tokio::test(start_paused = true)]
async fn one_reconcile_executes_plans_until_one_is_empty_with_the_time_of_its_clock() {
    let server = server().await;
    let key = Key::new("default", "stairs");
    let stairs = Stairs {
        meta: Meta {
            key: key.clone(),
            ..Meta::default()
        },
        climbed: Mutex::new(vec![9]),
        reconciles: Mutex::default(),
    };
    let (swept, queue) = (key.clone(), QueueHandle::default());
    let now = Arc::new(Mutex::new(Timestamp::UNIX_EPOCH));
    let clock = Arc::clone(&now);
    let controller = Controller::new("stairs", stairs, server.client("stairs-0"))
        .sweeps(move || vec![swept.clone()])
        .clock(Arc::new(move || *clock.lock()))
        .unelected()
        .queue(&queue);
    let stairs = controller.reconciler();
    queue.add(key.clone(), None);
    assert_eq!(queue.load(), None, "there is no term yet");
    let stop = CancellationToken::new();
    let running = tokio::spawn(controller.run("stairs-0", stop.clone()));
    let climbed = async |steps: &[u8]| {
        eventually("it has climbed", async || *stairs.climbed.lock() == *steps).await;
    };
    climbed(&[1, 2, 3, 4]).await;
    assert_eq!(*stairs.reconciles.lock(), 1);
    *now.lock() = Timestamp::from_second(1).unwrap();
    queue.add_after(key, Duration::from_secs(3));
    climbed(&[1, 2, 3, 4, 5, 6]).await;
    assert_eq!(*stairs.reconciles.lock(), 2);
    stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(server.calls("Create"), 0, "no Lease");
}

/// Records the keys that it observes, and whether its caches were complete.
#[derive(Default)]
struct Early {
    begun: AtomicBool,
    observed: Mutex<BTreeSet<(String, bool)>>,
}

impl Reconciler for Early {
    type Object = ConfigMap;
    type World = Position;
    type Action = u8;

    fn begin(&self) {
        self.begun.store(true, Ordering::Relaxed);
    }

    fn observe(&self, key: &Key, _: Inputs) -> Option<Position> {
        let begun = self.begun.load(Ordering::Relaxed);
        self.observed.lock().insert((key.name.clone(), begun));
        None
    }

    fn meta(position: &Position) -> &Meta {
        &position.meta
    }

    fn plan(_: &Position) -> Plan<u8> {
        Plan::default()
    }

    async fn act(&self, _: &Client, _: &Position, _: &u8) -> Result<Receipt, ApiError> {
        Ok(Receipt::none())
    }
}

#[tokio::test(start_paused = true)]
async fn an_eager_controller_works_before_its_caches_are_complete_and_sees_all_again_when_they_are()
{
    let server = server().await;
    server.put(&config_map("known"));
    server.set_faults(Faults {
        hang: vec!["Watch"],
        ..Faults::default()
    });
    let gateway = server.client("early-0");
    let configs = gateway.informer::<Config>();
    let controller = Controller::new("early", Early::default(), gateway)
        .for_(configs)
        .sweeps(|| vec![Key::new("default", "own")])
        .eager()
        .unelected();
    let (early, ready) = (controller.reconciler(), controller.ready());
    let stop = CancellationToken::new();
    let running = tokio::spawn(controller.run("early-0", stop.clone()));
    let observed = async |expected: &[(&str, bool)]| {
        let owned = |(name, begun): &(&str, bool)| ((*name).to_owned(), *begun);
        let expected: BTreeSet<_> = expected.iter().map(owned).collect();
        eventually("it has observed", async || {
            *early.observed.lock() == expected
        })
        .await;
    };
    observed(&[("own", false)]).await;
    sleep(Duration::from_secs(60)).await;
    observed(&[("own", false)]).await;
    assert!(!*ready.borrow());
    server.set_faults(Faults::default());
    // What an informer has meanwhile may be observed before `begin`, and is again after it.
    let again = ["own", "known"].map(|name| (name.to_owned(), true));
    eventually("it has observed all again", async || {
        let seen = early.observed.lock();
        again.iter().all(|one| seen.contains(one))
    })
    .await;
    assert!(*ready.borrow());
    stop.cancel();
    running.await.unwrap().unwrap();
}
