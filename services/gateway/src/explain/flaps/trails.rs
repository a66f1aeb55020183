//! The trails of the objects that were written of late, as many as memory is set aside for.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use setpoint_proto::trace::duration_ns;

use super::trail::{Changed, Flap, Trail, Write};

/// So many objects of one kind.
const OBJECTS: usize = 512;
/// So much of their versions, which the cache's log may have dropped already.
const BYTES: usize = 2 << 20;

/// The trails of one kind's objects. Those that nobody has written to for longest are forgotten first.
pub(super) struct Trails<C> {
    window_ns: i64,
    /// By uid: another object of the same name is another story.
    trails: HashMap<String, (u64, Trail<C>)>,
    order: BTreeMap<u64, String>,
    clock: u64,
    bytes: usize,
}

impl<C: Changed> Trails<C> {
    /// Turns count that are taken within `window`.
    pub fn new(window: Duration) -> Self {
        Self {
            window_ns: duration_ns(window),
            trails: HashMap::new(),
            order: BTreeMap::new(),
            clock: 0,
            bytes: 0,
        }
    }

    /// As [`Trail::enter`], of the object with this uid.
    pub fn enter(&mut self, uid: &str, write: Write<C>) -> Vec<Flap> {
        self.clock += 1;
        let (entered, trail) = self.trails.entry(uid.to_owned()).or_default();
        self.order.remove(entered);
        self.order.insert(self.clock, uid.to_owned());
        *entered = self.clock;
        self.bytes -= trail.size();
        let flaps = trail.enter(write, self.window_ns);
        self.bytes += trail.size();
        while self.trails.len() > OBJECTS || (self.bytes > BYTES && self.trails.len() > 1) {
            self.forget_one();
        }
        flaps
    }

    fn forget_one(&mut self) {
        let oldest = self.order.pop_first();
        let forgotten = oldest.and_then(|(_, uid)| self.trails.remove(&uid));
        self.bytes -= forgotten.map_or(0, |(_, trail)| trail.size());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    struct Sized(usize);

    impl Changed for Sized {
        fn fields(&self) -> BTreeSet<String> {
            ["x".to_owned()].into()
        }

        fn then(&mut self, later: Self) {
            self.0 = later.0;
        }

        fn size(&self) -> usize {
            self.0
        }
    }

    fn enter(trails: &mut Trails<Sized>, name: usize, writer: &str, size: usize) -> usize {
        let write = Write {
            writer: writer.to_owned(),
            at_ns: 1,
            change: Sized(size),
        };
        trails.enter(&name.to_string(), write).len()
    }

    #[test]
    fn objects_and_bytes_are_bounded_and_the_quietest_are_forgotten_first() {
        let mut trails = Trails::new(Duration::from_secs(60));
        for name in 0..10 * OBJECTS {
            enter(&mut trails, name, "a", 1);
            enter(&mut trails, 1_000_000, "b", 1);
        }
        assert_eq!(
            (trails.trails.len(), trails.order.len()),
            (OBJECTS, OBJECTS)
        );
        assert!(trails.trails.contains_key("1000000"));
        for name in 0..10 {
            enter(&mut trails, name, "a", BYTES / 2);
        }
        assert!(trails.bytes <= BYTES, "{}", trails.bytes);
    }

    /// Checks F24: of two objects of one name, too.
    #[test]
    fn each_object_has_a_trail_of_its_own() {
        let mut trails = Trails::new(Duration::from_secs(60));
        let told = |trails: &mut Trails<_>, name| {
            let writers = ["a", "b", "a", "b"];
            writers.map(|writer| enter(trails, name, writer, 1))
        };
        assert_eq!(told(&mut trails, 1), [0, 0, 0, 1]);
        for (name, writer) in (10..).zip(["a", "b"].iter().cycle().take(20)) {
            assert_eq!(enter(&mut trails, name, writer, 1), 0);
        }
    }
}
