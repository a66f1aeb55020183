//! Resolves the mounts of a container.

use setpoint_proto::core::{Container, Volume, VolumeMount};
use setpoint_runtime::{ImageVolume, Mount, RecursiveReadOnly};

use super::{Sources, config_error, is_files};
use crate::pod::container_config::pull_policy;
use crate::pod::environment::Error;
use crate::pod::expand::expand_all;

impl Sources<'_> {
    /// Resolves the mounts of a container with the environment `env`.
    ///
    /// # Errors
    /// If a `subPath` leaves its volume.
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
        let host = self.host(declared).await?;
        let claim = declared.volume_source.persistent_volume_claim.as_ref();
        let image = declared.volume_source.image.as_ref();
        let only_read = files || image.is_some() || claim.is_some_and(|claim| claim.read_only);
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
            files,
            propagates: wanted.mount_propagation.as_deref() == Some("HostToContainer"),
            recursive_read_only: recursive_read_only(wanted),
        })
    }
}

/// Returns whether a mount is to be read-only with all that is mounted below it.
fn recursive_read_only(wanted: &VolumeMount) -> RecursiveReadOnly {
    match wanted.recursive_read_only.as_deref() {
        Some("Enabled") => RecursiveReadOnly::Enabled,
        Some("IfPossible") => RecursiveReadOnly::IfPossible,
        _ => RecursiveReadOnly::Disabled,
    }
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
    if path.split('/').any(|part| part == "..") {
        let message = format!("unable to provision SubPath `{path}`: must not contain '..'");
        return Err(config_error(message));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
