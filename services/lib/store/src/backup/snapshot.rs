//! A snapshot of etcd, as a file: its checks and its keys.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use bytes::Bytes;
use etcd_client::proto::PbKeyValue;
use prost::Message as _;
use setpoint_codec::envelope;
use setpoint_encryption::ENCRYPTED;
use setpoint_model::Revision;
use sha2::{Digest as _, Sha256};

use super::Error;
use super::bolt::{Database, Value, damaged};
use crate::{bumped, keys};

/// The size of the digest of all bytes before it, with which a snapshot ends.
const DIGEST: u64 = 32;
/// The size of bbolt's pages divides that of the file before the digest.
const SECTOR: u64 = 512;
/// The bucket in which etcd keeps every version of every key.
const VERSIONS: &[u8] = b"key";
/// The size of a version's number: the revision and the position in its transaction, with an underscore between.
const NUMBER: usize = 17;

/// The newest values of all keys in a snapshot. Values are read when they are needed.
#[derive(Debug)]
pub struct Snapshot {
    file: File,
    entries: BTreeMap<String, Place>,
    /// The newest revision of etcd.
    newest: u64,
}

/// The place of a value in the file: that of the message with the key and the value.
#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    length: usize,
}

/// The content of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The revision of the newest write, as clients know it.
    pub revision: Revision,
    /// The number of objects of each resource, such as `pods` or `deployments.apps`.
    pub objects: BTreeMap<String, usize>,
    /// The number of objects that are encrypted at rest.
    pub encrypted: usize,
    /// The keys of objects whose value cannot be decoded.
    pub unreadable: Vec<String>,
}

impl Snapshot {
    /// Opens a file and checks its digest and its structure.
    ///
    /// # Errors
    /// The file cannot be read, is damaged or is not a snapshot.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let size = length
            .checked_sub(DIGEST)
            .filter(|size| size % SECTOR == 0 && *size > 0);
        let size = size.ok_or_else(|| damaged("it has no digest at its end"))?;
        check_digest(&file, size)?;
        let mut snapshot = Self {
            entries: BTreeMap::new(),
            newest: 0,
            file: file.try_clone()?,
        };
        let database = Database::open(&file, size)?;
        database.visit(VERSIONS, &mut |number, value| snapshot.take(number, &value))?;
        Ok(snapshot)
    }

    /// Takes one version of a key. They come in order of their revisions.
    fn take(&mut self, number: &[u8], value: &Value<'_>) -> Result<(), Error> {
        let revision = number.get(..8).and_then(|bytes| bytes.try_into().ok());
        let revision = revision.map(u64::from_be_bytes);
        let revision = revision.filter(|_| number.len() >= NUMBER);
        self.newest = revision.ok_or_else(|| damaged("a version without a number"))?;
        // Keys that are not UTF-8 are not of Setpoint.
        let Ok(key) = String::from_utf8(decode(value.bytes)?.key) else {
            return Ok(());
        };
        match number.len() {
            NUMBER => {
                let (offset, length) = (value.offset, value.bytes.len());
                self.entries.insert(key, Place { offset, length });
            }
            // A mark follows the number of a deletion.
            _ => drop(self.entries.remove(&key)),
        }
        Ok(())
    }

    /// Returns the keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Reads the value of a key; `None` if there is none.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn value(&self, key: &str) -> Result<Option<Bytes>, Error> {
        let Some(place) = self.entries.get(key) else {
            return Ok(None);
        };
        let mut bytes = vec![0; place.length];
        self.file.read_exact_at(&mut bytes, place.offset)?;
        Ok(Some(decode(&bytes)?.value.into()))
    }

    /// Returns the revision of the newest write, as clients know it.
    ///
    /// # Errors
    /// The file cannot be read, or the snapshot is of a store whose restore has not ended.
    pub fn revision(&self) -> Result<Revision, Error> {
        let bump = self.value(keys::REVISION_BUMP)?;
        let bump = bumped::bump(bump.as_deref()).map_err(|_| Error::Unfinished)?;
        Ok(Revision::from_raw(self.newest.saturating_add(bump)))
    }

    /// Reads all objects, and counts them.
    ///
    /// # Errors
    /// Those of [`value`](Self::value) and [`revision`](Self::revision).
    pub fn contents(&self) -> Result<Contents, Error> {
        let mut contents = Contents {
            revision: self.revision()?,
            ..Contents::default()
        };
        for key in self.keys().filter(|key| key.starts_with(keys::ROOT)) {
            let value = self.value(key)?.unwrap_or_default();
            *contents.objects.entry(resource(key)).or_default() += 1;
            if value.starts_with(ENCRYPTED) {
                contents.encrypted += 1;
            } else if envelope::read(&value).is_err() {
                contents.unreadable.push(key.to_owned());
            }
        }
        Ok(contents)
    }
}

/// Returns the name of the resource of an object, such as `deployments.apps`.
fn resource(key: &str) -> String {
    match keys::resource(key) {
        Some(("", plural)) => plural.to_owned(),
        Some((group, plural)) => format!("{plural}.{group}"),
        None => "others".to_owned(),
    }
}

fn decode(message: &[u8]) -> Result<PbKeyValue, Error> {
    PbKeyValue::decode(message).map_err(|error| Error::Damaged(error.to_string()))
}

/// Compares the digest at the end of the file with that of the bytes before it.
fn check_digest(file: &File, size: u64) -> Result<(), Error> {
    let mut reader = BufReader::with_capacity(1 << 20, file).take(size);
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let read = reader.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        digest.update(&buffer[..read]);
    }
    let mut expected = [0; DIGEST as usize];
    file.read_exact_at(&mut expected, size)?;
    match digest.finalize()[..] == expected {
        true => Ok(()),
        false => Err(damaged("its digest does not match")),
    }
}
