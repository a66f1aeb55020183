//! An object as people name it: `deploy/web-frontend`, or `deploy web-frontend`.

use anyhow::bail;
use clap::Args;
use setpoint_proto::setpoint::Subject;

/// Which object.
#[derive(Args, Clone, Debug)]
pub struct Named {
    /// What: `pod/NAME`, `deploy/NAME`, or any kind and name that kubectl takes
    #[arg(value_name = "KIND/NAME", required = true, num_args = 1..=2)]
    object: Vec<String>,
    /// Where it is
    #[arg(short, long, default_value = "default")]
    namespace: String,
}

impl Named {
    /// The object that is meant.
    ///
    /// # Errors
    /// When kind or name is missing.
    pub fn subject(&self) -> anyhow::Result<Subject> {
        let parts = match self.object.as_slice() {
            [whole] => whole.split_once('/'),
            [kind, name] => Some((kind.as_str(), name.as_str())),
            _ => None,
        };
        match parts.filter(|(kind, name)| !kind.is_empty() && !name.is_empty()) {
            Some((kind, name)) => Ok(Subject {
                resource: kind.to_owned(),
                namespace: self.namespace.clone(),
                name: name.to_owned(),
            }),
            None => bail!("name an object as KIND/NAME, for example deploy/web-frontend"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(object: &[&str]) -> anyhow::Result<Subject> {
        let object = object.iter().map(|&part| part.to_owned()).collect();
        let namespace = "production".to_owned();
        Named { object, namespace }.subject()
    }

    #[test]
    fn an_object_is_named_as_kubectl_takes_it() {
        for object in [&["deploy/web"] as &[&str], &["deploy", "web"]] {
            let subject = named(object).unwrap();
            let told = [subject.resource, subject.namespace, subject.name];
            assert_eq!(told, ["deploy", "production", "web"]);
        }
        for object in [&["web"] as &[&str], &["/web"], &["deploy/"], &["", "web"]] {
            assert!(named(object).is_err(), "{object:?}");
        }
    }
}
