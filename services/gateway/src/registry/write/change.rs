//! A change of a stored object, and the request that policies and webhooks see it as.

use setpoint_codec::{Object, fields};
use setpoint_kinds::{self as kinds, update};
use setpoint_proto::ApiError;
use setpoint_proto::meta::DeleteOptions;

use crate::admission::{Attributes, Chain, Operation};
use crate::offload::offload;
use crate::registry::conversion::Ownership;
use crate::registry::verbs::scale;
use crate::registry::write::current::Current;
use crate::registry::{Registry, Subresource, Target};

/// A change of an object.
pub(crate) struct Change<'a> {
    /// The object of the request, if `mutate` needs it.
    pub sent: Option<Box<dyn Object>>,
    /// The size of the request, which `mutate` processes besides the object.
    pub bytes: usize,
    pub ownership: Ownership,
    /// Whether the result of `mutate` has to be validated as an update.
    pub validates: bool,
    /// `None` for a part of a request that was admitted as a whole.
    pub admission: Option<Admission<'a>>,
}

/// The request that policies and webhooks see.
pub(crate) struct Admission<'a> {
    pub operation: Operation,
    pub target: &'a Target,
    /// The options of a deletion.
    pub options: Option<&'a DeleteOptions>,
}

impl<'a> Change<'a> {
    /// Returns an update of a target.
    pub(crate) fn update(target: &'a Target, bytes: usize) -> Self {
        Self {
            sent: None,
            bytes,
            ownership: Ownership::Taken,
            validates: true,
            admission: Some(Admission {
                operation: Operation::Update,
                target,
                options: None,
            }),
        }
    }

    /// Returns a part of a request that was admitted.
    pub(crate) fn admitted() -> Self {
        Self {
            sent: None,
            bytes: 0,
            ownership: Ownership::Taken,
            validates: false,
            admission: None,
        }
    }
}

impl Registry {
    /// Lets webhooks change the result of a change, validates it, and lets policies and webhooks judge it.
    pub(super) async fn admit_change(
        &self,
        change: &Change<'_>,
        request: &Attributes<'_>,
        old: &Current,
        new: &mut Box<dyn Object>,
        chain: &mut Chain<'_>,
    ) -> Result<(), ApiError> {
        let target = request.target;
        let mut changed = false;
        if chain.mutates() {
            let mut form = match request.operation {
                Operation::Delete => None,
                _ => Some(in_form(target, &**new, old)?),
            };
            changed = chain.mutate(request, form.as_mut()).await?;
            if changed {
                take(target, old, new, form)?;
            }
        }
        if change.validates || changed {
            let bytes = change.bytes.max(old.raw.len());
            offload(bytes, || {
                update::validate(&target.written(), &*old.object, &mut **new)
            })
            .await?;
        }
        if !chain.is_empty() {
            let form = match request.operation {
                Operation::Delete => None,
                _ => Some(in_form(target, &**new, old)?),
            };
            chain.judge(&request.with_object(form.as_deref())).await?;
        }
        Ok(())
    }
}

/// Returns an object as a request sees it: the scale for that subresource, and with the revision of the current object.
pub(super) fn in_form(
    target: &Target,
    object: &dyn Object,
    current: &Current,
) -> Result<Box<dyn Object>, ApiError> {
    let mut object = object.clone_box();
    object.meta_mut().resource_version = current.revision.to_string();
    Ok(match target.subresource {
        Subresource::Scale => Box::new(scale::of(&*object)?),
        _ => object,
    })
}

/// Takes over what webhooks have changed, as far as the request may change it.
fn take(
    target: &Target,
    old: &Current,
    new: &mut Box<dyn Object>,
    form: Option<Box<dyn Object>>,
) -> Result<(), ApiError> {
    let Some(form) = form else { return Ok(()) };
    match target.subresource {
        Subresource::Scale => {
            let replicas = scale::replicas_of(&*form, target)?;
            kinds::of(target.kind).set_replicas(&mut **new, replicas);
        }
        _ => *new = form,
    }
    update::prepare(&target.written(), &*old.object, &mut **new)?;
    fields::keep_times(&*old.object, &mut **new);
    Ok(())
}
