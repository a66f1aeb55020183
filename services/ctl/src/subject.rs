//! Command-line arguments that name an object: `deploy/web-frontend` or `deploy web-frontend`.

use clap::Args;
use setpoint_proto::setpoint::ObjectRef;

use crate::advice::advised;

/// The arguments that name an object.
#[derive(Args, Clone, Debug)]
pub struct ObjectArgs {
    /// The object: `pod/NAME`, `deploy/NAME`, or any kind and name that kubectl accepts
    #[arg(value_name = "KIND/NAME", required = true, num_args = 1..=2)]
    object: Vec<String>,
    /// The namespace of the object
    #[arg(short, long, default_value = "default")]
    namespace: String,
}

impl ObjectArgs {
    /// Returns the named object.
    ///
    /// # Errors
    /// The kind or the name is missing.
    pub fn subject(&self) -> anyhow::Result<ObjectRef> {
        let parts = match self.object.as_slice() {
            [whole] => whole.split_once('/'),
            [kind, name] => Some((kind.as_str(), name.as_str())),
            _ => None,
        };
        match parts.filter(|(kind, name)| !kind.is_empty() && !name.is_empty()) {
            Some((kind, name)) => Ok(ObjectRef {
                resource: kind.to_owned(),
                namespace: self.namespace.clone(),
                name: name.to_owned(),
            }),
            None => Err(advised(
                "name an object as KIND/NAME, for example deploy/web-frontend",
                "setpoint why deploy/web-frontend -n production",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(object: &[&str]) -> anyhow::Result<ObjectRef> {
        let object = object.iter().map(|&part| part.to_owned()).collect();
        let namespace = "production".to_owned();
        ObjectArgs { object, namespace }.subject()
    }

    #[test]
    fn kind_and_name_are_one_or_two_arguments() {
        for object in [&["deploy/web"] as &[&str], &["deploy", "web"]] {
            let subject = named(object).unwrap();
            let parts = [subject.resource, subject.namespace, subject.name];
            assert_eq!(parts, ["deploy", "production", "web"]);
        }
        for object in [&["web"] as &[&str], &["/web"], &["deploy/"], &["", "web"]] {
            assert!(named(object).is_err(), "{object:?}");
        }
    }
}
