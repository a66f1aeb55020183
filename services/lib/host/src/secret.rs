//! A secret that processes share in a file.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Number of random bytes of a new secret.
const BYTES: usize = 32;
/// Minimum length of a secret in characters.
const MIN_LENGTH: usize = 16;

/// Reads the secret in a file.
///
/// # Errors
/// If the file cannot be read, or has fewer than 16 characters.
pub fn read(path: &Path) -> io::Result<String> {
    let secret = fs::read_to_string(path)?.trim().to_owned();
    match secret.len() < MIN_LENGTH {
        true => Err(io::Error::other(format!(
            "the secret has fewer than {MIN_LENGTH} characters"
        ))),
        false => Ok(secret),
    }
}

/// Reads the secret in a file. If there is no file, makes one with a random secret: the first of several processes
/// does. Only its user may read it; a file of root also root's group.
///
/// # Errors
/// If the file can neither be read nor made.
pub fn read_or_create(path: &Path) -> io::Result<String> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        secret => return secret,
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    let written = write(&draft);
    let linked = written.and_then(|()| match fs::hard_link(&draft, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => linked?,
    }
    read(path)
}

fn write(path: &Path) -> io::Result<()> {
    let mut random = [0; BYTES];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let is_root = nix::unistd::Uid::effective().is_root();
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(if is_root { 0o640 } else { 0o600 })
        .open(path)?;
    file.write_all(secret.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_first_process_makes_the_secret_that_all_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/secret");
        assert!(read(&path).is_err());
        let made = read_or_create(&path).unwrap();
        assert_eq!(made.len(), 2 * BYTES);
        assert_eq!(read_or_create(&path).unwrap(), made);
        assert_eq!(read(&path).unwrap(), made);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o007, 0, "not for others");
        let entries = fs::read_dir(path.parent().unwrap()).unwrap();
        assert_eq!(entries.count(), 1, "no draft is left");
    }

    #[test]
    fn a_short_secret_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        fs::write(&path, "guess\n").unwrap();
        let error = read_or_create(&path).unwrap_err().to_string();
        assert_eq!(error, "the secret has fewer than 16 characters");
    }
}
