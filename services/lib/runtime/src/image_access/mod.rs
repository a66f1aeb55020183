//! Decides whether a Pod may use an image that is present, as the kubelet does: of an image that was pulled with
//! credentials, a Pod has to show these, or others that the registry accepts. Otherwise it could run the private images
//! of other Pods of its node.
//!
//! ```text
//! pull begins ─▶ pulling/<hash of the image's name>
//!    ends     ─▶ pulled/<hash of the image's id>: with which credentials, or that none were needed
//! ```
//! A file of a pull that an earlier agent has begun, and whose image is present, becomes a record without credentials:
//! the next Pod has to pull.

mod folder;
mod policy;
mod record;

use std::collections::HashMap;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use parking_lot::Mutex;
use tracing::{debug, warn};

use self::folder::{Folder, file_name};
pub use self::policy::{Policy, Verification};
use self::record::{Grant, PullSecret, Record, Verdict};
use crate::image_gc::Listed;
use crate::image_name;
use crate::image_records::familiar;
use crate::{Credential, keyring::SecretRef};

/// The pulls of this agent, and what they needed. The files are copies of the records in memory.
pub struct ImageAccess {
    policy: Policy,
    folder: Folder,
    records: Mutex<Records>,
}

#[derive(Default)]
struct Records {
    /// By the names of their files, which tell the ids of the images of those that cannot be read.
    pulled: HashMap<String, Record>,
    /// The number of pulls in progress, by image.
    pulling: HashMap<String, usize>,
}

impl ImageAccess {
    /// Opens the records in a directory, which is made if there is none.
    ///
    /// # Errors
    /// If it cannot be made or listed.
    pub fn open(policy: Policy, directory: &Path) -> io::Result<Self> {
        let folder = Folder::open(directory)?;
        let records = Records {
            pulled: folder.pulled()?,
            // None of these is in progress any more.
            pulling: folder
                .pulling()?
                .into_iter()
                .map(|image| (image, 0))
                .collect(),
        };
        Ok(Self {
            policy,
            folder,
            records: Mutex::new(records),
        })
    }

    /// Returns whether a Pod with these credentials has to pull an image that is present under this id.
    pub fn must_pull(&self, image: &str, id: &str, credentials: &[Credential]) -> bool {
        let mut records = self.records.lock();
        let key = file_name(id);
        let is_ours = records.pulled.contains_key(&key) || records.pulling.contains_key(image);
        if !self.policy.verifies(image, is_ours) {
            return false;
        }
        let Some(record) = records.pulled.get_mut(&key) else {
            return true;
        };
        let own: Vec<_> = credentials.iter().map(PullSecret::of).collect();
        match record.verdict(image_name(image), &own) {
            Verdict::Refused => true,
            Verdict::Granted => false,
            Verdict::Learned(secret) => {
                record.add(image_name(image), Grant::Secret(secret), Timestamp::now());
                self.write(&key, record);
                false
            }
        }
    }

    /// Records that a pull begins, so that its image is known as one of this agent's whatever happens. The pull ends
    /// with [`Self::failed`] or [`Self::pulled`].
    ///
    /// # Errors
    /// If the record cannot be written, in which case the pull has failed.
    pub fn begin(&self, image: &str) -> io::Result<()> {
        let mut records = self.records.lock();
        let pulls = records.pulling.entry(image.to_owned()).or_default();
        *pulls = pulls.saturating_add(1);
        self.folder.begin(image)
    }

    /// Records that a pull has failed.
    pub fn failed(&self, image: &str) {
        self.end(&mut self.records.lock(), image);
    }

    /// Records that an image was pulled with these credentials, or without any. Without a record of that, the next Pod
    /// has to pull.
    pub fn pulled(&self, image: &str, id: &str, credential: Option<&Credential>) {
        let grant = match credential {
            Some(credential) => Grant::Secret(PullSecret::of(credential)),
            None => Grant::Everyone,
        };
        let mut records = self.records.lock();
        if self.add(&mut records, image, id, Some(grant)) {
            self.end(&mut records, image);
        }
    }

    /// Keeps what is known of pulls that an earlier agent has begun.
    pub fn recover(&self, images: &[Listed]) {
        let mut records = self.records.lock();
        let begun: Vec<_> = records.pulling.keys().cloned().collect();
        for image in begun {
            let name = familiar(&image);
            let present = images.iter().find(|listed| {
                let mut names = listed.tags.iter().chain(&listed.digests);
                names.any(|known| familiar(known) == name)
            });
            let recorded =
                present.is_none_or(|found| self.add(&mut records, &image, &found.id, None));
            if recorded {
                self.end(&mut records, &image);
            }
        }
    }

    /// Forgets images that are gone: those that are not among all that were `listed` after this time.
    pub fn forget_others(&self, listed: &[Listed], since: Timestamp) {
        let mut records = self.records.lock();
        let present: Vec<_> = listed.iter().map(|image| file_name(&image.id)).collect();
        records.pulled.retain(|key, record| {
            let stays = present.contains(key) || record.last_updated_time >= since;
            if !stays && let Err(error) = self.folder.remove(key) {
                warn!(image = record.image_ref, %error, "cannot remove the record of an image");
                return true;
            }
            stays
        });
    }

    /// Adds to the record of an image. Returns whether it is written.
    fn add(&self, records: &mut Records, image: &str, id: &str, grant: Option<Grant>) -> bool {
        let (key, now) = (file_name(id), Timestamp::now());
        let record = records.pulled.entry(key.clone()).or_default();
        let is_new = record.image_ref != id;
        if is_new {
            *record = Record::new(id, now);
        }
        let changed = grant.is_some_and(|grant| record.add(image_name(image), grant, now));
        (!is_new && !changed) || self.write(&key, record)
    }

    fn write(&self, key: &str, record: &Record) -> bool {
        let written = self.folder.write(key, record);
        if let Err(error) = &written {
            warn!(image = record.image_ref, %error, "cannot write the record of an image");
        }
        written.is_ok()
    }

    /// Ends a pull. The file goes with the last one of its image.
    fn end(&self, records: &mut Records, image: &str) {
        let others = records
            .pulling
            .get(image)
            .map_or(0, |pulls| pulls.saturating_sub(1));
        if others > 0 {
            records.pulling.insert(image.to_owned(), others);
            return;
        }
        match self.folder.end(image) {
            Ok(()) => drop(records.pulling.remove(image)),
            Err(error) => debug!(image, %error, "cannot remove the record of a pull"),
        }
    }
}

#[cfg(test)]
mod tests;
