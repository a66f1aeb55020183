//! Resolves the mounts of a container.

use setpoint_proto::core::{Container, Volume, VolumeMount};

use super::{Sources, config_error, group, is_files};
use crate::container_config::pull_policy;
use crate::environment::Error;
use crate::expand::expand_all;
use crate::runtime::{File, ImageVolume, Mount, VolumeKind};

impl Sources<'_> {
    /// Resolves the mounts of a container with the environment `env`.
    ///
    /// Not every engine can mount a part of a volume, so the files of a `subPath` are copied when the container starts;
    /// Kubernetes does not update such files later either.
    ///
    /// # Errors
    /// If a `subPath` leaves its volume, or a mount path is reserved by the engine.
    pub async fn mounts(
        &self,
        container: &Container,
        env: &[(String, String)],
    ) -> Result<Vec<Mount>, Error> {
        let mut mounts = Vec::new();
        for wanted in &container.volume_mounts {
            let mut declared = self.pod.spec.volumes.iter();
            if let Some(declared) = declared.find(|volume| volume.name == wanted.name) {
                mounts.push(self.mount(wanted, declared, env).await?);
            }
        }
        Ok(mounts)
    }

    async fn mount(
        &self,
        wanted: &VolumeMount,
        declared: &Volume,
        env: &[(String, String)],
    ) -> Result<Mount, Error> {
        let (files, sub_path) = (is_files(declared), sub_path(wanted, env)?);
        let mut copies = Vec::new();
        if files && !sub_path.is_empty() {
            let kind = self.kind(declared).await?;
            copies = sub_path_files(&kind, &sub_path, &wanted.mount_path);
        }
        let host = self.host(declared).await?;
        let claim = declared.volume_source.persistent_volume_claim.as_ref();
        let image = declared.volume_source.image.as_ref();
        let only_read = files || image.is_some() || claim.is_some_and(|claim| claim.read_only);
        let paths = copies.iter().map(|file| file.path.as_str());
        if let Some(path) = paths
            .chain([wanted.mount_path.as_str()])
            .find(is_managed_by_engine)
            .filter(|_| self.has_engine)
        {
            return Err(config_error(format!(
                "volume {:?} cannot be mounted at {path:?} on this node: the container engine mounts its own file there",
                wanted.name
            )));
        }
        Ok(Mount {
            volume: wanted.name.clone(),
            path: wanted.mount_path.clone(),
            host,
            image: image.map(|image| ImageVolume {
                reference: image.reference.clone(),
                pull: pull_policy(&image.pull_policy),
                volume: String::new(),
            }),
            sub_path,
            read_only: wanted.read_only || only_read,
            copies,
            group: group(self.pod),
        })
    }
}

/// Returns whether the engine mounts a file of its own at this path.
fn is_managed_by_engine(path: &&str) -> bool {
    let parts: Vec<_> = path
        .split('/')
        .filter(|sub_path_files| !sub_path_files.is_empty())
        .collect();
    matches!(
        parts.as_slice(),
        ["etc", "resolv.conf" | "hosts" | "hostname"]
    )
}

/// Returns the validated `subPath` of a mount, with `subPathExpr` expanded; empty for the whole volume.
fn sub_path(wanted: &VolumeMount, env: &[(String, String)]) -> Result<String, Error> {
    let path = match wanted.sub_path_expr.as_str() {
        "" => wanted.sub_path.clone(),
        expression => {
            let expanded = expand_all(expression, &env.iter().cloned().collect());
            expanded.map_err(|name| config_error(format!("missing value for {name:?}")))?
        }
    };
    if path.starts_with('/') {
        let message = format!("error SubPath `{path}` must not be an absolute path");
        return Err(config_error(message));
    }
    if path.split('/').any(|sub_path_files| sub_path_files == "..") {
        let message = format!("unable to provision SubPath `{path}`: must not contain '..'");
        return Err(config_error(message));
    }
    Ok(path)
}

/// Returns the files below `sub_path`, with absolute paths at the mount.
fn sub_path_files(kind: &VolumeKind, sub_path: &str, mount_path: &str) -> Vec<File> {
    let VolumeKind::Files { files, .. } = kind else {
        return Vec::new();
    };
    let below = files.iter().filter_map(|file| {
        let rest = file.path.strip_prefix(sub_path.trim_end_matches('/'))?;
        let path = match rest.is_empty() || rest.starts_with('/') {
            true => format!("{mount_path}{rest}"),
            false => return None,
        };
        Some(File {
            path,
            ..file.clone()
        })
    });
    below.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sub_path_is_one_file_or_the_files_of_one_directory() {
        let file = |path: &str| File {
            path: path.into(),
            content: Vec::new(),
            mode: 0o400,
        };
        let kind = VolumeKind::Files {
            files: vec![file("conf/a"), file("confuse")],
            secret: false,
        };
        assert_eq!(sub_path_files(&kind, "conf", "/etc/x"), [file("/etc/x/a")]);
        assert_eq!(sub_path_files(&kind, "confuse", "/etc/b"), [file("/etc/b")]);
    }

    /// Checks K14.
    #[test]
    fn a_sub_path_expression_is_expanded_and_stays_in_its_volume() {
        let env = [
            ("NAME".to_owned(), "web".to_owned()),
            ("UP".to_owned(), "..".to_owned()),
        ];
        let path = |plain: &str, expression: &str| {
            let wanted = VolumeMount {
                sub_path: plain.into(),
                sub_path_expr: expression.into(),
                ..VolumeMount::default()
            };
            super::sub_path(&wanted, &env).map_err(|error| error.to_string())
        };
        assert_eq!(path("plain", ""), Ok("plain".into()));
        assert_eq!(path("", "logs/$(NAME)"), Ok("logs/web".into()));
        assert_eq!(path("", "$(NO)"), Err("missing value for \"NO\"".into()));
        assert!(path("", "a/$(UP)").is_err() && path("", "/$(NAME)").is_err());
    }

    /// Checks K17.
    #[test]
    fn paths_of_files_that_the_engine_mounts_are_recognized() {
        for path in ["/etc/resolv.conf", "/etc//hosts", "etc/hostname/"] {
            assert!(is_managed_by_engine(&path), "{path}");
        }
        assert!(!is_managed_by_engine(&"/etc/resolv.conf.d") && !is_managed_by_engine(&"/etc"));
    }
}
