//! The times at which images were pulled and last used, and which of the unused ones are removed.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The times at which images were pulled and last used, by their [familiar names](familiar).
#[derive(Debug, Default)]
pub struct Records(HashMap<String, Record>);

/// The times at which an image was pulled and last used.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// The time of its pull.
    pub pulled: Instant,
    /// The time at which it was last used.
    pub used: Instant,
}

impl Records {
    /// Records a pull.
    pub fn pulled(&mut self, image: &str, now: Instant) {
        let record = Record {
            pulled: now,
            used: now,
        };
        self.0.insert(familiar(image), record);
    }

    /// Records that a container uses an image, if the agent has pulled it.
    pub fn used(&mut self, image: &str, now: Instant) {
        if let Some(record) = self.0.get_mut(&familiar(image)) {
            record.used = now;
        }
    }

    /// Returns all records.
    pub const fn all(&self) -> &HashMap<String, Record> {
        &self.0
    }
}

/// An image that may be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The time of its pull.
    pub pulled: Instant,
    /// The time at which it was last used.
    pub used: Instant,
}

/// Returns the images to remove: those that were not used for the longest time, as many as it takes. Pure.
pub fn plan(mut images: Vec<Unused>, bytes: u64, min_age: Duration, now: Instant) -> Vec<Unused> {
    images.retain(|image| now.saturating_duration_since(image.pulled) >= min_age);
    images.sort_by(|one, other| {
        let used = one.used.cmp(&other.used);
        used.then(one.pulled.cmp(&other.pulled))
            .then_with(|| one.name.cmp(&other.name))
    });
    let mut freed: u64 = 0;
    let needed = images.into_iter().take_while(|image| {
        let missing = freed < bytes;
        freed = freed.saturating_add(image.bytes);
        missing
    });
    needed.collect()
}

/// Returns the name of an image as the engine lists it: without the default registry, and with a tag or digest.
pub fn familiar(image: &str) -> String {
    let name = image.strip_prefix("docker.io/").unwrap_or(image);
    let name = name.strip_prefix("library/").unwrap_or(name);
    let tagged = |path: &str| {
        path.rsplit('/')
            .next()
            .is_some_and(|last| last.contains(':'))
    };
    match name.contains('@') || tagged(name) {
        true => name.to_owned(),
        false => format!("{name}:latest"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIN_AGE: Duration = Duration::from_secs(120);

    fn image(name: &str, bytes: u64, pulled: u64, used: u64, start: Instant) -> Unused {
        Unused {
            name: name.into(),
            bytes,
            pulled: start + Duration::from_secs(pulled),
            used: start + Duration::from_secs(used),
        }
    }

    #[test]
    fn the_images_unused_for_longest_are_removed_until_enough_is_freed() {
        let start = Instant::now();
        let now = start + Duration::from_secs(1000);
        let images = || {
            vec![
                image("recent", 10, 0, 900, start),
                image("young", 10, 900, 900, start),
                image("old", 10, 0, 100, start),
                image("older", 10, 0, 50, start),
            ]
        };
        let names = |bytes| -> Vec<_> {
            let planned = plan(images(), bytes, MIN_AGE, now);
            planned.into_iter().map(|image| image.name).collect()
        };
        assert!(names(0).is_empty());
        assert_eq!(names(10), ["older"]);
        assert_eq!(names(11), ["older", "old"]);
        assert_eq!(names(u64::MAX), ["older", "old", "recent"]);
    }

    #[test]
    fn names_are_compared_as_the_engine_lists_them() {
        for (name, listed) in [
            ("busybox", "busybox:latest"),
            ("docker.io/library/busybox:1", "busybox:1"),
            ("docker.io/team/app", "team/app:latest"),
            ("here:5000/app", "here:5000/app:latest"),
            ("app@sha256:ab", "app@sha256:ab"),
        ] {
            assert_eq!(familiar(name), listed);
        }
    }

    proptest! {
        /// A plan frees enough or everything that is old enough, and its last image was needed.
        #[test]
        fn a_plan_frees_enough_and_no_more(
            all in prop::collection::vec((1_u64..50, 0_u64..200, 0_u64..200), 0..10),
            bytes in 0_u64..200,
        ) {
            let start = Instant::now();
            let now = start + Duration::from_secs(200);
            let all: Vec<_> = all.iter().enumerate().map(|(index, (size, pulled, used))| {
                image(&index.to_string(), *size, *pulled, pulled + used, start)
            }).collect();
            let old: u64 = all.iter().filter(|image| now - image.pulled >= MIN_AGE).map(|image| image.bytes).sum();
            let planned = plan(all, bytes, MIN_AGE, now);
            let freed: u64 = planned.iter().map(|image| image.bytes).sum();
            prop_assert!(planned.iter().all(|image| now - image.pulled >= MIN_AGE));
            prop_assert!(freed >= bytes.min(old));
            let without_last = freed - planned.last().map_or(0, |image| image.bytes);
            prop_assert!(planned.is_empty() || without_last < bytes);
        }
    }
}
