//! Writers that create, update and delete ConfigMaps until they are stopped, and record the acknowledged state.

use std::collections::BTreeMap;
use std::time::Duration;

use setpoint_controller::Client;
use setpoint_controller::client::{ListOptions, Preconditions};
use setpoint_model::Key;
use setpoint_proto::core::ConfigMap;
use setpoint_proto::{ApiError, Reason};
use tokio::task::JoinSet;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use crate::{Address, client};

/// Interval between two writes of a writer: frequent enough for a fault to hit one, and not a heavy load.
const INTERVAL: Duration = Duration::from_millis(10);

/// The state of an object according to its only writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It exists with this value.
    Exists(u64),
    /// It is deleted.
    Deleted,
    /// The last write failed without a definite answer and may have been committed.
    Unknown,
}

type States = BTreeMap<String, Known>;

/// Running writers.
pub struct Writers {
    writers: JoinSet<States>,
    stop: CancellationToken,
    client: Client,
}

impl Writers {
    /// Starts `writers` writers, each with a connection of its own.
    pub fn start(gateways: &Address, writers: usize) -> Self {
        let stop = CancellationToken::new();
        let mut set = JoinSet::new();
        for n in 0..writers {
            set.spawn(write(client(gateways), n, stop.clone()));
        }
        Self {
            writers: set,
            stop,
            client: client(gateways),
        }
    }

    /// Stops the writers and verifies that all objects have their acknowledged state. Returns the number of objects
    /// with a known state.
    ///
    /// # Panics
    /// If an acknowledged write was lost.
    pub async fn stop_and_verify(mut self) -> usize {
        self.stop.cancel();
        let mut states = States::new();
        while let Some(joined) = self.writers.join_next().await {
            states.extend(joined.expect("a writer does not panic"));
        }
        let listed = self.client.list::<ConfigMap>(&ListOptions::default()).await;
        let listed = listed.expect("a gateway answers");
        let values = listed.items.iter().map(|object| {
            let value = object.data.get("value").and_then(|text| text.parse().ok());
            (object.metadata.name.as_str(), value)
        });
        let stored: BTreeMap<&str, Option<u64>> = values.collect();
        for (name, known) in &states {
            let value = stored.get(name.as_str()).copied().flatten();
            match known {
                Known::Exists(value_known) => assert_eq!(value, Some(*value_known), "{name}"),
                Known::Deleted => assert_eq!(value, None, "{name}"),
                Known::Unknown => {}
            }
        }
        let certain = states.values().filter(|known| **known != Known::Unknown);
        certain.count()
    }
}

/// Creates objects, updates each twice, and deletes every other one.
async fn write(gateway: Client, writer: usize, stop: CancellationToken) -> States {
    let mut states = States::new();
    let mut pace = interval(INTERVAL);
    for n in 0_u64.. {
        pace.tick().await;
        if stop.is_cancelled() {
            break;
        }
        let name = format!("writer-{writer}-{}", n / 4);
        let object = config_map(&name, n % 4);
        let written = match n % 4 {
            0 => gateway.create(&object).await.map(|_| Known::Exists(0)),
            value @ 1..=2 => gateway.update(&object).await.map(|_| Known::Exists(value)),
            _ if n % 8 == 3 => continue,
            _ => remove(&gateway, &object).await.map(|()| Known::Deleted),
        };
        let known = match written {
            Ok(known) => known,
            // NotFound is expected only if it is unknown whether the object was created.
            Err(error)
                if error.reason == Reason::NotFound
                    && states.get(&name) != Some(&Known::Unknown) =>
            {
                panic!("the acknowledged {name} does not exist: {error}")
            }
            Err(_) => Known::Unknown,
        };
        let _ = states.insert(name, known);
    }
    states
}

async fn remove(gateway: &Client, object: &ConfigMap) -> Result<(), ApiError> {
    let key = Key::of(&object.metadata);
    let deleted = gateway.delete::<ConfigMap>(&key, Preconditions::default(), None);
    deleted.await.map(drop)
}

fn config_map(name: &str, value: u64) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.namespace = "default".into();
    object.metadata.name = name.into();
    object.data = [("value".to_owned(), value.to_string())].into();
    object
}
