//! The members of etcd as the first machine of a cluster of several has last seen them: once its own one is dead, it
//! and its gateways ask the others. Machines that have joined have them in their records.

use std::{fs, iter};

use anyhow::Context as _;
use setpoint_host::private;
use setpoint_store::etcd::membership::{Member, clients_of};

use super::cluster_spec::{ClusterSpec, address};
use super::state_dir::StateDir;

/// Returns the URLs at which the first machine reaches members of etcd: its own one first, of which there is no other
/// before machines have joined.
pub fn endpoints(state_dir: &StateDir, spec: &ClusterSpec) -> Vec<String> {
    let own = address(spec.etcd);
    let known = read(state_dir).into_iter();
    let others: Vec<_> = known.filter(|url| *url != own).collect();
    iter::once(own).chain(others).collect()
}

/// Returns the URLs at which clients reach them; none before any was seen. What is damaged is as if it was not there.
fn read(state_dir: &StateDir) -> Vec<String> {
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
        let spec = ClusterSpec::default();
        let own = address(spec.etcd);
        assert_eq!(endpoints(&state_dir, &spec), [own.as_str()]);
        let member = Member {
            clients: vec![own.clone(), "https://10.0.0.2:2379".to_owned()],
            ..Member::default()
        };
        write(&state_dir, &[member]).unwrap();
        let expected = [own.as_str(), "https://10.0.0.2:2379"];
        assert_eq!(endpoints(&state_dir, &spec), expected);
        fs::write(state_dir.etcd_members(), "[").unwrap();
        assert!(read(&state_dir).is_empty());
        state_dir.clear().unwrap();
        assert!(!state_dir.etcd_members().exists());
    }
}
