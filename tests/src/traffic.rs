//! Writers that create, change and delete ConfigMaps until they are told to stop, and remember what was acknowledged.

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

use crate::client;

/// Between two writes of a writer: enough of them for any fault to hit one, and not more than a busy machine can do.
const PACE: Duration = Duration::from_millis(10);

/// How an object stands, as far as its one writer can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// It is there, with this value.
    There(u64),
    /// It is gone.
    Gone,
    /// The last write was not answered, so that it may or may not have been done.
    Unsure,
}

type Book = BTreeMap<String, Known>;

/// Writers at work.
pub struct Traffic {
    writers: JoinSet<Book>,
    stop: CancellationToken,
    client: Client,
}

impl Traffic {
    /// So many writers, each over a connection of its own.
    pub fn begin(urls: &str, writers: usize) -> Self {
        let stop = CancellationToken::new();
        let mut set = JoinSet::new();
        for n in 0..writers {
            set.spawn(write(client(urls), n, stop.clone()));
        }
        Self {
            writers: set,
            stop,
            client: client(urls),
        }
    }

    /// Ends it, and checks that everything acknowledged is as it was acknowledged. Answers how many writes that were.
    ///
    /// # Panics
    /// When something was lost.
    pub async fn end(mut self) -> usize {
        self.stop.cancel();
        let mut books = Book::new();
        while let Some(book) = self.writers.join_next().await {
            books.extend(book.expect("a writer does not panic"));
        }
        let listed = self.client.list::<ConfigMap>(&ListOptions::default()).await;
        let listed = listed.expect("a gateway answers");
        let values = listed.items.iter().map(|object| {
            let value = object.data.get("value").and_then(|text| text.parse().ok());
            (object.metadata.name.as_str(), value)
        });
        let stands: BTreeMap<&str, Option<u64>> = values.collect();
        for (name, known) in &books {
            let value = stands.get(name.as_str()).copied().flatten();
            match known {
                Known::There(value_known) => assert_eq!(value, Some(*value_known), "{name}"),
                Known::Gone => assert_eq!(value, None, "{name}"),
                Known::Unsure => {}
            }
        }
        let sure = books.values().filter(|known| **known != Known::Unsure);
        sure.count()
    }
}

/// Objects are created, changed twice, and every other one deleted.
async fn write(gateway: Client, writer: usize, stop: CancellationToken) -> Book {
    let mut book = Book::new();
    let mut pace = interval(PACE);
    for n in 0_u64.. {
        pace.tick().await;
        if stop.is_cancelled() {
            break;
        }
        let name = format!("traffic-{writer}-{}", n / 4);
        let object = config_map(&name, n % 4);
        let written = match n % 4 {
            0 => gateway.create(&object).await.map(|_| Known::There(0)),
            value @ 1..=2 => gateway.update(&object).await.map(|_| Known::There(value)),
            _ if n % 8 == 3 => continue,
            _ => remove(&gateway, &object).await.map(|()| Known::Gone),
        };
        let known = match written {
            Ok(known) => known,
            // What was not created can be neither changed nor deleted, and that is a certain answer.
            Err(error)
                if error.reason == Reason::NotFound && book.get(&name) != Some(&Known::Unsure) =>
            {
                panic!("{name} was acknowledged and is not there: {error}")
            }
            Err(_) => Known::Unsure,
        };
        let _ = book.insert(name, known);
    }
    book
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
