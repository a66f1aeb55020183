//! The files of the records of images, in a directory of the state of the agent.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use setpoint_host::private;
use sha2::{Digest as _, Sha256};
use tracing::warn;

use super::record::{Record, hex};

/// The names of the directories, and the start of those of files, which are the kubelet's.
const PULLING: &str = "pulling";
const PULLED: &str = "pulled";
const HASH: &str = "sha256-";
/// The start of the name of a file that is being written.
const DRAFT: &str = "draft-";

/// The directories of the records of images.
pub struct Folder {
    pulling: PathBuf,
    pulled: PathBuf,
}

/// The content of the file of a pull.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Intent {
    kind: String,
    api_version: String,
    image: String,
}

impl Folder {
    /// Makes the directories.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let folder = Self {
            pulling: directory.join(PULLING),
            pulled: directory.join(PULLED),
        };
        private::create_dir_all(directory)?;
        private::create_dir_all(&folder.pulling)?;
        private::create_dir_all(&folder.pulled)?;
        Ok(folder)
    }

    /// Returns the records, by the names of their files. One that cannot be read is one without credentials.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn pulled(&self) -> io::Result<HashMap<String, Record>> {
        let read = |(name, path): (String, PathBuf)| {
            let record = parse(&path).unwrap_or_else(|error| {
                warn!(path = %path.display(), %error, "cannot read the record of an image");
                Record::default()
            });
            (name, record)
        };
        Ok(files(&self.pulled)?.into_iter().map(read).collect())
    }

    /// Returns the images whose pulls have begun and not ended. Files that cannot be read name none.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn pulling(&self) -> io::Result<Vec<String>> {
        let read = |(_, path): (String, PathBuf)| match parse::<Intent>(&path) {
            Ok(intent) => Some(intent.image),
            Err(error) => {
                warn!(path = %path.display(), %error, "cannot read the record of a pull");
                None
            }
        };
        Ok(files(&self.pulling)?.into_iter().filter_map(read).collect())
    }

    /// Writes the file of a pull.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn begin(&self, image: &str) -> io::Result<()> {
        let intent = Intent {
            kind: "ImagePullIntent".to_owned(),
            api_version: "kubelet.config.k8s.io/v1beta1".to_owned(),
            image: image.to_owned(),
        };
        write(&self.pulling, &file_name(image), &intent)
    }

    /// Removes the file of a pull.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn end(&self, image: &str) -> io::Result<()> {
        remove(&self.pulling.join(file_name(image)))
    }

    /// Writes a record.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn write(&self, name: &str, record: &Record) -> io::Result<()> {
        write(&self.pulled, name, record)
    }

    /// Removes a record.
    ///
    /// # Errors
    /// If the file system refuses it.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        remove(&self.pulled.join(name))
    }
}

/// Returns the name of the file of an image, by its name or its id, of which either may be longer than file names are.
pub fn file_name(image: &str) -> String {
    format!("{HASH}{}", hex(&Sha256::digest(image)))
}

/// Lists the files of a directory, without drafts.
fn files(directory: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(HASH) {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

fn parse<T: for<'a> Deserialize<'a>>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// Writes a file as a whole, so that it is there after the machine has lost its power.
fn write(directory: &Path, name: &str, content: &impl Serialize) -> io::Result<()> {
    let draft = directory.join(format!("{DRAFT}{name}"));
    let mut file = private::open(private::options().write(true).truncate(true), &draft)?;
    file.write_all(&serde_json::to_vec(content)?)?;
    file.sync_all()?;
    fs::rename(draft, directory.join(name))?;
    File::open(directory)?.sync_all()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}
