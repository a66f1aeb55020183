//! Sets the default IngressClass of a new Ingress that names none (upstream: the admission plugin DefaultIngressClass).

use setpoint_codec::Object;
use setpoint_kinds::{ingress, ingressclass};
use setpoint_proto::networking::{Ingress, IngressClass};

use super::{Plugin, Step, default_class};
use crate::admission::{Attributes, Operation, Reader};

/// The plugin.
pub(super) struct DefaultIngressClass;

impl Plugin for DefaultIngressClass {
    fn admit<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        if request.operation != Operation::Create {
            return None;
        }
        let object = object.downcast_mut::<Ingress>()?;
        let class = &mut object.spec.ingress_class_name;
        if class.is_some() || object.metadata.annotations.contains_key(ingress::CLASS) {
            return None;
        }
        Some(Box::pin(async move {
            *class = default_class::find::<IngressClass>(ingressclass::DEFAULT, reader).await?;
            Ok(())
        }))
    }
}
