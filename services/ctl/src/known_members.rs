//! The members of etcd as the first machine of a cluster of several has last seen them: once its own one is dead, it
//! asks the others. Machines that have joined have them in their records.

use std::fs;

use anyhow::Context as _;
use setpoint_host::private;
use setpoint_store::etcd::membership::{Member, clients_of};

use crate::launcher::StateDir;

/// Returns the URLs at which clients reach them; none before any was seen. What is damaged is as if it was not there.
pub fn read(state_dir: &StateDir) -> Vec<String> {
    let text = fs::read(state_dir.etcd_members()).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// Keeps those that vote, on the first machine.
///
/// # Errors
/// If the file system refuses it.
pub fn write(state_dir: &StateDir, members: &[Member]) -> anyhow::Result<()> {
    if state_dir.components().exists() {
        return Ok(());
    }
    let path = state_dir.etcd_members();
    let text = serde_json::to_string(&clients_of(members))? + "\n";
    private::write(&path, text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_known_until_another_cluster_starts() {
        let root = tempfile::tempdir().unwrap();
        let state_dir = StateDir::find(root.path(), None);
        let _held = state_dir.lock().unwrap();
        assert!(read(&state_dir).is_empty());
        let member = Member {
            clients: vec!["https://10.0.0.2:2379".to_owned()],
            ..Member::default()
        };
        write(&state_dir, &[member]).unwrap();
        assert_eq!(read(&state_dir), ["https://10.0.0.2:2379"]);
        fs::write(state_dir.etcd_members(), "[").unwrap();
        assert!(read(&state_dir).is_empty());
        state_dir.clear().unwrap();
        assert!(!state_dir.etcd_members().exists());
    }
}
