//! The RuntimeClass of a new Pod, which sets its overhead, its node selector and tolerations (upstream: the admission
//! plugin RuntimeClass).

use std::collections::BTreeMap;

use setpoint_codec::Object;
use setpoint_kinds::validation::podspec::canonicalise;
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::core::{Pod, PodSpec, Toleration};
use setpoint_proto::node::{RuntimeClass, Scheduling};

use super::{Plugin, Step};
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;
use setpoint_kinds::Target;

/// The plugin.
pub(super) struct Classes;

impl Plugin for Classes {
    fn admit<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        if request.operation != Operation::Create {
            return None;
        }
        let pod = object.downcast_mut::<Pod>()?;
        Some(Box::pin(admit(pod, request.target, reader)))
    }
}

/// Completes a new Pod from the class that it names.
///
/// # Errors
/// `Forbidden` if the class does not exist or contradicts the Pod, or if the Pod has an overhead without a class.
async fn admit(pod: &mut Pod, target: &Target, reader: &dyn Reader) -> Result<(), ApiError> {
    let class = match &pod.spec.runtime_class_name {
        None => RuntimeClass::default(),
        Some(name) => {
            let found = reader.find::<RuntimeClass>(&Key::new("", name)).await?;
            found.ok_or_else(|| {
                let why = format!("pod rejected: RuntimeClass {name:?} not found");
                errors::forbidden(target, &why, None)
            })?
        }
    };
    apply(&mut pod.spec, class).map_err(|why| errors::forbidden(target, &why, None))
}

fn apply(spec: &mut PodSpec, class: RuntimeClass) -> Result<(), String> {
    canonicalise(&mut spec.overhead);
    match class.overhead {
        Some(overhead) if spec.overhead.is_empty() => spec.overhead = overhead.pod_fixed,
        Some(overhead) if spec.overhead != overhead.pod_fixed => {
            return Err(
                "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead".into(),
            );
        }
        None if !spec.overhead.is_empty() => {
            return Err(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
                    .into(),
            );
        }
        _ => {}
    }
    match class.scheduling {
        Some(scheduling) => apply_scheduling(spec, scheduling),
        None => Ok(()),
    }
}

fn apply_scheduling(spec: &mut PodSpec, scheduling: Scheduling) -> Result<(), String> {
    let own: &mut BTreeMap<_, _> = &mut spec.node_selector;
    for (key, value) in scheduling.node_selector {
        match own.get(&key) {
            Some(given) if *given != value => {
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {given}"
                ));
            }
            _ => own.insert(key, value),
        };
    }
    let mut all = std::mem::take(&mut spec.tolerations);
    all.extend(scheduling.tolerations);
    spec.tolerations = merged(all);
    Ok(())
}

/// Removes the tolerations that others include (upstream: `MergeTolerations`).
fn merged(all: Vec<Toleration>) -> Vec<Toleration> {
    let mut merged: Vec<Toleration> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let mut later = all[index + 1..].iter();
        let is_included = merged.iter().any(|kept| includes(kept, toleration))
            || later.any(|other| other != toleration && includes(other, toleration));
        if !is_included {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Returns whether `outer` tolerates all that `inner` tolerates.
fn includes(outer: &Toleration, inner: &Toleration) -> bool {
    if outer == inner {
        return true;
    }
    let all_keys = outer.key.is_empty() && outer.operator == "Exists";
    let same_key = outer.key == inner.key || all_keys;
    let same_effect = outer.effect.is_empty() || outer.effect == inner.effect;
    let long_enough = outer.effect != "NoExecute"
        || outer
            .toleration_seconds
            .is_none_or(|outer| inner.toleration_seconds.is_some_and(|inner| inner <= outer));
    let same_value = match outer.operator.as_str() {
        "Exists" => true,
        "" | "Equal" => inner.operator == "Equal" && inner.value == outer.value,
        _ => false,
    };
    same_key && same_effect && long_enough && same_value
}

#[cfg(test)]
mod tests {
    use setpoint_proto::meta::Quantity;
    use setpoint_proto::node::Overhead;

    use super::*;

    fn amounts(cpu: &str) -> BTreeMap<String, Quantity> {
        let string = cpu.to_owned();
        BTreeMap::from([("cpu".to_owned(), Quantity { string })])
    }

    fn toleration(key: &str, operator: &str) -> Toleration {
        Toleration {
            key: key.into(),
            operator: operator.into(),
            ..Default::default()
        }
    }

    #[test]
    fn the_overhead_is_that_of_the_class() {
        let class = RuntimeClass {
            overhead: Some(Overhead {
                pod_fixed: amounts("100m"),
            }),
            ..Default::default()
        };
        for (given, class, expected) in [
            (None, class.clone(), Ok(amounts("100m"))),
            (Some("0.1"), class.clone(), Ok(amounts("100m"))),
            (Some("1"), class, Err("doesn't match")),
            (
                Some("1"),
                RuntimeClass::default(),
                Err("without corresponding"),
            ),
        ] {
            let mut spec = PodSpec {
                overhead: given.map(amounts).unwrap_or_default(),
                ..Default::default()
            };
            match (apply(&mut spec, class), expected) {
                (Ok(()), Ok(overhead)) => assert_eq!(spec.overhead, overhead),
                (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
                (found, _) => panic!("{found:?}"),
            }
        }
    }

    #[test]
    fn the_scheduling_of_the_class_is_merged() {
        let class = RuntimeClass {
            scheduling: Some(Scheduling {
                node_selector: BTreeMap::from([("disk".into(), "ssd".into())]),
                tolerations: vec![toleration("a", "Exists"), toleration("b", "Exists")],
            }),
            ..Default::default()
        };
        let mut spec = PodSpec {
            tolerations: vec![toleration("a", "Equal"), toleration("b", "Exists")],
            ..Default::default()
        };
        apply(&mut spec, class.clone()).unwrap();
        assert_eq!(spec.node_selector["disk"], "ssd");
        let expected = [toleration("b", "Exists"), toleration("a", "Exists")];
        assert_eq!(spec.tolerations, expected);
        spec.node_selector.insert("disk".into(), "hdd".into());
        assert_eq!(
            apply(&mut spec, class).unwrap_err(),
            "conflict: runtimeClass.scheduling.nodeSelector[disk] = ssd; pod.spec.nodeSelector[disk] = hdd"
        );
    }

    #[test]
    fn a_toleration_of_all_keys_includes_others() {
        let all = vec![toleration("", "Exists"), toleration("a", "Exists")];
        assert_eq!(merged(all), [toleration("", "Exists")]);
        let mut short = toleration("a", "Exists");
        short.effect = "NoExecute".into();
        short.toleration_seconds = Some(1);
        let mut long = short.clone();
        long.toleration_seconds = Some(2);
        assert_eq!(merged(vec![short, long.clone()]), [long]);
    }
}
