//! The subject of an evaluation: a Pod, or the template of a workload.

use setpoint_codec::Object;
use setpoint_kinds::Subresource;
use setpoint_proto::apps::{DaemonSet, Deployment, ReplicaSet, StatefulSet};
use setpoint_proto::batch::{CronJob, Job};
use setpoint_proto::core::{Pod, PodSpec, PodTemplate, PodTemplateSpec, ReplicationController};
use setpoint_proto::meta::ObjectMeta;

use crate::admission::{Attributes, Operation};

/// A Pod, or a template, from which a controller makes Pods.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub meta: &'a ObjectMeta,
    pub spec: &'a PodSpec,
    /// Whether it is a Pod. No level is enforced on templates.
    pub is_pod: bool,
}

impl<'a> Subject<'a> {
    /// Returns what a request creates or changes; `None` if that is nothing of the kind.
    pub(super) fn of(request: &Attributes<'a>) -> Option<Self> {
        let (object, part) = (request.object?, request.subresource);
        if let Some(pod) = object.downcast_ref::<Pod>() {
            return changes_pod(part).then_some(Self {
                meta: &pod.metadata,
                spec: &pod.spec,
                is_pod: true,
            });
        }
        let template = template_of(object).filter(|_| part == Subresource::None)?;
        Some(Self {
            meta: &template.metadata,
            spec: &template.spec,
            is_pod: false,
        })
    }

    /// Returns whether a request changes something that a level is about: the number of containers, or an image. Other
    /// fields of the spec cannot be changed, or do not matter. Every change of a template does.
    pub(super) fn is_significant(&self, request: &Attributes<'_>) -> bool {
        let old = request.old.and_then(|old| old.downcast_ref::<Pod>());
        match old.filter(|_| request.operation == Operation::Update) {
            Some(old) => is_significant(self.spec, &old.spec),
            None => true,
        }
    }
}

/// Returns whether a part of a Pod has a spec. One that is not listed does, so that none is forgotten.
const fn changes_pod(part: Subresource) -> bool {
    use Subresource::{Attach, Binding, Eviction, Exec, PortForward, Proxy, Status};
    !matches!(
        part,
        Attach | Binding | Eviction | Exec | PortForward | Proxy | Status
    )
}

fn template_of(object: &dyn Object) -> Option<&PodTemplateSpec> {
    macro_rules! template {
        ($($kind:ty => $template:expr,)*) => {
            $(if let Some(object) = object.downcast_ref::<$kind>() {
                let template: fn(&$kind) -> Option<&PodTemplateSpec> = $template;
                return template(object);
            })*
        };
    }
    template! {
        ReplicaSet => |object| Some(&object.spec.template),
        Deployment => |object| Some(&object.spec.template),
        StatefulSet => |object| Some(&object.spec.template),
        DaemonSet => |object| Some(&object.spec.template),
        Job => |object| Some(&object.spec.template),
        CronJob => |object| Some(&object.spec.job_template.spec.template),
        PodTemplate => |object| Some(&object.template),
        ReplicationController => |object| object.spec.template.as_ref(),
    }
    None
}

fn is_significant(new: &PodSpec, old: &PodSpec) -> bool {
    let lists = [
        (&new.containers, &old.containers),
        (&new.init_containers, &old.init_containers),
    ];
    let has_changed = lists.into_iter().any(|(new, old)| {
        let mut pairs = new.iter().zip(old);
        new.len() != old.len() || pairs.any(|(new, old)| new.image != old.image)
    });
    // Ephemeral containers are only ever added.
    let old_image = |name: &str| {
        let old = old.ephemeral_containers.iter();
        let mut old = old.map(|container| &container.ephemeral_container_common);
        old.find(|common| common.name == name)
            .map(|common| &common.image)
    };
    let mut ephemeral =
        { new.ephemeral_containers.iter() }.map(|one| &one.ephemeral_container_common);
    has_changed || ephemeral.any(|common| old_image(&common.name) != Some(&common.image))
}
