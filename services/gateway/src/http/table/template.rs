//! The wide cells that every kind with a Pod template has.

use serde_json::Value;
use setpoint_model::selector::Selector;
use setpoint_proto::core::PodTemplateSpec;
use setpoint_proto::meta::LabelSelector;

/// The cell, if the column is one about the template or the selector.
pub(super) fn cell(
    column: &str,
    template: &PodTemplateSpec,
    selector: Option<&LabelSelector>,
) -> Option<Value> {
    let containers = template.spec.containers.iter();
    Some(match column {
        "Containers" => join(containers.map(|container| container.name.as_str())),
        "Images" => join(containers.map(|container| container.image.as_str())),
        "Selector" => self::selector(selector),
        _ => return None,
    })
}

fn join<'a>(words: impl Iterator<Item = &'a str>) -> Value {
    words.collect::<Vec<_>>().join(",").into()
}

fn selector(selector: Option<&LabelSelector>) -> Value {
    match selector.map(Selector::from_label_selector) {
        None => "<none>".into(),
        Some(Ok(selector)) if selector.is_empty() => "<none>".into(),
        Some(Ok(selector)) => selector.to_string().into(),
        Some(Err(_)) => "<error>".into(),
    }
}
