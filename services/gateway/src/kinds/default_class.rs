//! The default classes of claims and Ingresses, which are marked by an annotation (upstream: the admission plugins
//! DefaultStorageClass and DefaultIngressClass).

use std::cmp::Reverse;

use prost::Message;
use setpoint_codec::kind_of;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Resource};

use crate::registry::{AtLeast, Filter, Registry, errors};

/// Returns whether one of the annotations marks a class as the default.
pub(super) fn is_default(meta: &ObjectMeta, annotations: &[&str]) -> bool {
    let mut values = annotations.iter().map(|name| meta.annotations.get(*name));
    values.any(|value| value.is_some_and(|value| value == "true"))
}

/// Returns the name of a class as a table cell.
pub(super) fn name_cell(meta: &ObjectMeta, annotations: &[&str]) -> String {
    match is_default(meta, annotations) {
        true => format!("{} (default)", meta.name),
        false => meta.name.clone(),
    }
}

/// Returns the name of the default class; of several, the newest one.
pub(super) async fn find<T: Resource + Message + Default>(
    annotations: &[&str],
    registry: &Registry,
) -> Result<Option<String>, ApiError> {
    let all = Filter::all(kind_of::<T>(), "");
    let listed = registry.cache().list(&all, AtLeast::Newest).await?;
    let mut classes = Vec::new();
    for item in &listed.items {
        let class: T = errors::readable(T::decode(item.raw.as_ref()))?;
        if is_default(class.meta(), annotations) {
            classes.push(class.meta().clone());
        }
    }
    Ok(newest(classes))
}

fn newest(classes: Vec<ObjectMeta>) -> Option<String> {
    let created = |meta: &ObjectMeta| meta.creation_timestamp.timestamp();
    let newest = classes
        .into_iter()
        .min_by_key(|meta| (Reverse(created(meta)), meta.name.clone()));
    newest.map(|meta| meta.name)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn of_several_defaults_the_newest_counts() {
        let class = |name: &str, second| ObjectMeta {
            name: name.into(),
            creation_timestamp: Timestamp::from_second(second).unwrap().into(),
            ..Default::default()
        };
        assert_eq!(newest(Vec::new()), None);
        let classes = vec![class("a", 1), class("c", 2), class("b", 2)];
        assert_eq!(newest(classes).as_deref(), Some("b"));
    }
}
