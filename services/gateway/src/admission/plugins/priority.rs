//! Sets the priority of a new Pod from its class, and lets only one class be the default (upstream: the admission
//! plugin Priority).

use std::fmt::Display;
use std::sync::Arc;

use prost::Message;
use setpoint_codec::{Object, kind_of};
use setpoint_kinds::Target;
use setpoint_kinds::priorityclass;
use setpoint_model::Key;
use setpoint_proto::ApiError;
use setpoint_proto::core::Pod;
use setpoint_proto::scheduling::PriorityClass;
use setpoint_store::cache::{AtLeast, Cached, Filter};

use super::{Plugin, Step};
use crate::admission::reader::decode;
use crate::admission::{Attributes, Operation, Reader};
use crate::errors;

/// The plugin.
pub(super) struct Priority;

impl Plugin for Priority {
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
        Some(Box::pin(set_priority(pod, request.target, reader)))
    }

    fn check<'a>(&'a self, request: Attributes<'a>, reader: &'a dyn Reader) -> Option<Step<'a>> {
        let class = request.object?.downcast_ref::<PriorityClass>()?;
        let old = request
            .old
            .and_then(|old| old.downcast_ref::<PriorityClass>());
        let becomes_default = class.global_default && !old.is_some_and(|old| old.global_default);
        becomes_default.then(|| Box::pin(check_only_default(class, reader)) as Step<'a>)
    }
}

/// Sets the priority and the preemption policy of the class that the Pod names, or of the default class. Nobody else
/// may set them: whoever chose the priority of a Pod could evict the Pods of all others.
async fn set_priority(pod: &mut Pod, target: &Target, reader: &dyn Reader) -> Result<(), ApiError> {
    let class = find_class(&pod.spec.priority_class_name, target, reader).await?;
    let spec = &mut pod.spec;
    take("integer", "priority", &mut spec.priority, class.value)
        .and_then(|()| match class.preemption_policy {
            Some(policy) => take(
                "string",
                "PreemptionPolicy",
                &mut spec.preemption_policy,
                policy,
            ),
            None => Ok(()),
        })
        .map_err(|why| errors::forbidden(target, &why, None))?;
    spec.priority_class_name = class.metadata.name;
    Ok(())
}

/// Returns the class of this name; without a name the default class or, if there is none,
/// [`priorityclass::unclassified`].
async fn find_class(
    name: &str,
    target: &Target,
    reader: &dyn Reader,
) -> Result<PriorityClass, ApiError> {
    if name.is_empty() {
        let classes = defaults(reader, AtLeast::Any).await?;
        let default = priorityclass::default(&classes).cloned();
        return Ok(default.unwrap_or_else(priorityclass::unclassified));
    }
    let mut system = priorityclass::system_classes();
    if let Some(class) = system.find(|class| class.metadata.name == name) {
        return Ok(class);
    }
    match reader.find::<PriorityClass>(&Key::new("", name)).await? {
        Some(class) => Ok(class),
        None => {
            let why = format!("no PriorityClass with name {name} was found");
            Err(errors::forbidden(target, &why, None))
        }
    }
}

/// Sets a field to the value of the priority class; one that is given must be equal.
fn take<T: PartialEq + Display>(
    of: &str,
    field: &str,
    given: &mut Option<T>,
    computed: T,
) -> Result<(), String> {
    match given {
        Some(given) if *given != computed => Err(format!(
            "the {of} value of {field} ({given}) must not be provided in pod spec; priority admission controller \
            computed {computed} from the given PriorityClass name"
        )),
        _ => {
            *given = Some(computed);
            Ok(())
        }
    }
}

/// Refuses a second default.
async fn check_only_default(new: &PriorityClass, reader: &dyn Reader) -> Result<(), ApiError> {
    match priorityclass::default(&defaults(reader, AtLeast::Newest).await?) {
        Some(class) if class.metadata.name != new.metadata.name => {
            let why = format!(
                "PriorityClass {} is already marked as default. Only one default can exist",
                class.metadata.name
            );
            let target = Target::new(kind_of::<PriorityClass>(), "", &new.metadata.name, "")?;
            Err(errors::forbidden(&target, &why, None))
        }
        _ => Ok(()),
    }
}

/// The part of an encoded class that says whether it is the default.
#[derive(Message)]
struct WithDefault {
    #[prost(bool, tag = "3")]
    global_default: bool,
}

/// Returns the classes that are the default. The others are not decoded as a whole: every new Pod without a class asks
/// for it.
async fn defaults(reader: &dyn Reader, at: AtLeast) -> Result<Vec<PriorityClass>, ApiError> {
    let all = Filter::all(kind_of::<PriorityClass>(), "");
    let listed = reader.list(&all, at).await?;
    let is_default = |item: &&Arc<Cached>| {
        let read = WithDefault::decode(item.raw.as_ref());
        read.map_or(true, |class| class.global_default)
    };
    let defaults = listed.items.iter().filter(is_default);
    defaults.map(|item| decode(item)).collect()
}
