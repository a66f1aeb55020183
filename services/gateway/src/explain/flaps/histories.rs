//! The recent writes of the objects of a feed, within limits of number and memory.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use setpoint_proto::trace::duration_ns;

use super::write_history::{FieldChanges, Flap, Write, WriteHistory};

/// The maximum number of objects.
const OBJECTS: usize = 512;
/// The maximum size of their versions in bytes; the cache may have dropped these versions from its log.
const BYTES: usize = 2 << 20;

/// The recent writes of the objects of one feed. The least recently written object is evicted first.
pub(super) struct Histories<C> {
    window_ns: i64,
    /// By uid, since another object may have the same name later.
    histories: HashMap<String, (u64, WriteHistory<C>)>,
    order: BTreeMap<u64, String>,
    clock: u64,
    bytes: usize,
}

impl<C: FieldChanges> Histories<C> {
    /// Returns empty histories; a flap consists of turns within `window`.
    pub fn new(window: Duration) -> Self {
        Self {
            window_ns: duration_ns(window),
            histories: HashMap::new(),
            order: BTreeMap::new(),
            clock: 0,
            bytes: 0,
        }
    }

    /// Calls [`WriteHistory::enter`] for the object with this uid.
    pub fn enter(&mut self, uid: &str, write: Write<C>) -> Vec<Flap> {
        self.clock += 1;
        let (entered, history) = self.histories.entry(uid.to_owned()).or_default();
        self.order.remove(entered);
        self.order.insert(self.clock, uid.to_owned());
        *entered = self.clock;
        self.bytes -= history.size();
        let flaps = history.enter(write, self.window_ns);
        self.bytes += history.size();
        while self.histories.len() > OBJECTS || (self.bytes > BYTES && self.histories.len() > 1) {
            self.evict();
        }
        flaps
    }

    fn evict(&mut self) {
        let oldest = self.order.pop_first();
        let evicted = oldest.and_then(|(_, uid)| self.histories.remove(&uid));
        self.bytes -= evicted.map_or(0, |(_, history)| history.size());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    struct Sized(usize);

    impl FieldChanges for Sized {
        fn fields(&self) -> BTreeSet<String> {
            ["x".to_owned()].into()
        }

        fn extend(&mut self, later: Self) {
            self.0 = later.0;
        }

        fn size(&self) -> usize {
            self.0
        }
    }

    fn enter(histories: &mut Histories<Sized>, name: usize, writer: &str, size: usize) -> usize {
        let write = Write {
            writer: writer.to_owned(),
            at_ns: 1,
            change: Sized(size),
        };
        histories.enter(&name.to_string(), write).len()
    }

    #[test]
    fn objects_and_bytes_are_bounded_and_the_least_recently_written_object_is_evicted() {
        let mut histories = Histories::new(Duration::from_secs(60));
        for name in 0..10 * OBJECTS {
            enter(&mut histories, name, "a", 1);
            enter(&mut histories, 1_000_000, "b", 1);
        }
        assert_eq!(
            (histories.histories.len(), histories.order.len()),
            (OBJECTS, OBJECTS)
        );
        assert!(histories.histories.contains_key("1000000"));
        for name in 0..10 {
            enter(&mut histories, name, "a", BYTES / 2);
        }
        assert!(histories.bytes <= BYTES, "{}", histories.bytes);
    }

    /// Checks F24, also for two objects of one name.
    #[test]
    fn each_object_has_a_history_of_its_own() {
        let mut histories = Histories::new(Duration::from_secs(60));
        let found = |histories: &mut Histories<_>, name| {
            let writers = ["a", "b", "a", "b"];
            writers.map(|writer| enter(histories, name, writer, 1))
        };
        assert_eq!(found(&mut histories, 1), [0, 0, 0, 1]);
        for (name, writer) in (10..).zip(["a", "b"].iter().cycle().take(20)) {
            assert_eq!(enter(&mut histories, name, writer, 1), 0);
        }
    }
}
