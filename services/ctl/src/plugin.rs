//! The command as a plug-in of kubectl: under the name `kubectl-setpoint` in `PATH` it is `kubectl setpoint`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The name by which kubectl finds the plug-in.
const NAME: &str = "kubectl-setpoint";
/// The variable with the kubeconfigs of kubectl.
pub const KUBECONFIG: &str = "KUBECONFIG";

/// Returns whether the program was called by the name of the plug-in.
pub fn is_called(program: Option<&OsString>) -> bool {
    let name = program.map(Path::new).and_then(Path::file_name);
    name == Some(OsStr::new(NAME))
}

/// Returns the first file that `KUBECONFIG` names and that exists, as the plug-in is to reach the cluster of kubectl;
/// `None` if it is `own`, that of the local cluster.
pub fn kubeconfig(variable: Option<OsString>, own: &Path) -> Option<PathBuf> {
    let variable = variable?;
    let mut files = std::env::split_paths(&variable);
    let file = files.find(|path| path.is_file())?;
    let is_same = |own: PathBuf| file.canonicalize().is_ok_and(|file| file == own);
    (!own.canonicalize().is_ok_and(is_same)).then_some(file)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_name_of_the_program_makes_it_a_plug_in() {
        for (program, expected) in [
            ("kubectl-setpoint", true),
            ("/usr/local/bin/kubectl-setpoint", true),
            ("setpoint", false),
            ("/opt/kubectl-setpoint/setpoint", false),
        ] {
            assert_eq!(is_called(Some(&program.into())), expected, "{program}");
        }
        assert!(!is_called(None));
    }

    #[test]
    fn it_reaches_the_cluster_of_kubectl() {
        let root = tempfile::tempdir().unwrap();
        let [own, other, absent] = ["own", "other", "absent"].map(|name| root.path().join(name));
        fs::write(&own, "").unwrap();
        fs::write(&other, "").unwrap();
        let named = |files: &[&PathBuf]| kubeconfig(std::env::join_paths(files).ok(), &own);
        assert_eq!(kubeconfig(None, &own), None);
        assert_eq!(named(&[&absent]), None);
        assert_eq!(named(&[&own]), None);
        assert_eq!(named(&[&absent, &other, &own]), Some(other.clone()));
    }
}
