//! The default class among those that an annotation marks, for claims and Ingresses.

use std::cmp::Reverse;

use prost::Message;
use setpoint_codec::kind_of;
use setpoint_kinds::default_class::is_default;
use setpoint_proto::meta::ObjectMeta;
use setpoint_proto::{ApiError, Resource};
use setpoint_store::cache::{AtLeast, Filter};

use crate::admission::Reader;
use crate::admission::reader::decode;

/// Returns the name of the default class; of several, the newest one.
pub(super) async fn find<T: Resource + Message + Default>(
    annotations: &[&str],
    reader: &dyn Reader,
) -> Result<Option<String>, ApiError> {
    let all = Filter::all(kind_of::<T>(), "");
    let listed = reader.list(&all, AtLeast::Newest).await?;
    let mut classes = Vec::new();
    for item in &listed.items {
        let class: T = decode(item)?;
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
