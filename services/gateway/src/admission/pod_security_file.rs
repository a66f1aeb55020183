//! The file with the configuration of Pod security.

use std::path::Path;

use setpoint_document as document;
use setpoint_pod_security::Configuration;

/// Reads the configuration of a file, a `PodSecurityConfiguration` in YAML or JSON. An empty path stands for upstream's
/// defaults.
///
/// # Errors
/// With the name of the file, and the path of each field that is wrong.
pub(crate) fn read(file: &Path) -> Result<Configuration, String> {
    if file.as_os_str().is_empty() {
        return Ok(Configuration::default());
    }
    let read = document::read(file).map_err(|error| error.to_string());
    let read = read.and_then(|text| Configuration::read(&document::yaml(&text)?));
    read.map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn written(text: &str) -> Result<Configuration, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pod-security.yaml");
        fs::write(&file, text).unwrap();
        let read = read(&file);
        read.map_err(|error| error.replace(&format!("{}/", folder.path().display()), ""))
    }

    #[test]
    fn a_file_is_read_or_refused_with_its_name_and_the_field() {
        const HEAD: &str =
            "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n";
        assert_eq!(read(Path::new("")), Ok(Configuration::default()));
        let baseline = written(&format!("{HEAD}defaults:\n  enforce: baseline\n")).unwrap();
        assert_eq!(baseline.defaults.enforce.to_string(), "baseline:latest");
        let wrong = written(&format!("{HEAD}exemptions:\n  namespaces: [a, a]\n"));
        let expected = "pod-security.yaml: exemptions.namespaces[1]: Duplicate value: \"a\"";
        assert_eq!(wrong.unwrap_err(), expected);
        assert!(written("{").unwrap_err().starts_with("pod-security.yaml: "));
        let missing = read(Path::new("/none/pod-security.yaml")).unwrap_err();
        assert!(
            missing.starts_with("/none/pod-security.yaml: "),
            "{missing}"
        );
    }
}
