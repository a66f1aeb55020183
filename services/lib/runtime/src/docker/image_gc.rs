//! Removes images that the agent has pulled and that no container uses.
//!
//! The engine may have other users, and images that were built on its machine cannot be pulled again. Therefore only
//! images that this agent has pulled since it started are removed.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use bollard::models::ImageSummary;
use bollard::query_parameters::{ListImagesOptions, RemoveImageOptions};
use tracing::{debug, info};

use super::Shared;

/// The times at which images were pulled and last used, by their [familiar names](familiar).
#[derive(Debug, Default)]
pub struct Records(HashMap<String, Record>);

/// The times at which an image was pulled and last used.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    pulled: Instant,
    used: Instant,
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
struct Unused {
    name: String,
    bytes: u64,
    pulled: Instant,
    used: Instant,
}

impl Shared {
    /// Removes unused images of at least this age, until `bytes` are freed. Returns the number of bytes freed.
    pub(super) async fn remove_images(&self, bytes: u64, min_age: Duration) -> u64 {
        let client = &self.engine.client;
        let images = match client.list_images(None::<ListImagesOptions>).await {
            Ok(images) => images,
            Err(error) => {
                debug!(%error, "the images of the engine are unknown");
                return 0;
            }
        };
        let containers = self.table.lock().containers();
        let mut in_use: HashSet<_> = containers.iter().map(|one| familiar(&one.image)).collect();
        in_use.insert(familiar(&self.pause_image));
        let now = Instant::now();
        let unused = unused(&self.images.records(&in_use, now), &in_use, images);
        let mut freed: u64 = 0;
        for image in plan(unused, bytes, min_age, now) {
            // The engine refuses to remove the image of a container, of whatever user.
            match client
                .remove_image(&image.name, None::<RemoveImageOptions>, None)
                .await
            {
                Ok(_) => {
                    info!(
                        image = image.name,
                        bytes = image.bytes,
                        "removed an unused image"
                    );
                    freed = freed.saturating_add(image.bytes);
                }
                Err(error) => debug!(image = image.name, %error, "cannot remove the image"),
            }
        }
        freed
    }
}

/// Returns the images that the agent has pulled and that neither a container uses nor another tag names.
fn unused(
    records: &HashMap<String, Record>,
    in_use: &HashSet<String>,
    images: Vec<ImageSummary>,
) -> Vec<Unused> {
    let one = |image: ImageSummary| {
        let names = || image.repo_tags.iter().chain(&image.repo_digests);
        let (name, record) =
            names().find_map(|name| Some((name, records.get(&familiar(name))?)))?;
        let others = image.repo_tags.iter().any(|tag| tag != name);
        let is_used = names().any(|name| in_use.contains(&familiar(name)));
        (!others && !is_used).then(|| Unused {
            name: name.clone(),
            bytes: u64::try_from(image.size).unwrap_or_default(),
            pulled: record.pulled,
            used: record.used,
        })
    };
    images.into_iter().filter_map(one).collect()
}

/// Returns the images to remove: those that were not used for the longest time, as many as it takes. Pure.
fn plan(mut images: Vec<Unused>, bytes: u64, min_age: Duration, now: Instant) -> Vec<Unused> {
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
fn familiar(image: &str) -> String {
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
    fn only_images_that_the_agent_pulled_and_nothing_uses_are_removed() {
        let now = Instant::now();
        let mut records = Records::default();
        for pulled in [
            "docker.io/library/busybox",
            "nginx:1.25",
            "tagged:1",
            "used:1",
        ] {
            records.pulled(pulled, now);
        }
        let listed = |tags: &[&str]| ImageSummary {
            repo_tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            repo_digests: vec![format!("{}@sha256:0", tags[0])],
            size: 7,
            ..ImageSummary::default()
        };
        let images = vec![
            listed(&["busybox:latest"]),
            listed(&["nginx:1.25"]),
            listed(&["tagged:1", "mine:dev"]),
            listed(&["used:1"]),
            listed(&["built-here:dev"]),
        ];
        let in_use = [familiar("used:1")].into();
        let names: Vec<_> = unused(&records.0, &in_use, images);
        let names: Vec<_> = names.iter().map(|image| image.name.as_str()).collect();
        assert_eq!(names, ["busybox:latest", "nginx:1.25"]);
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
