//! Adds the default tolerations of a new Pod (upstream: the admission plugin DefaultTolerationSeconds).

use setpoint_codec::Object;
use setpoint_kinds::pod::tolerations;
use setpoint_proto::core::Pod;

use super::{Plugin, Step};
use crate::admission::{Attributes, Operation, Reader};

/// The plugin.
pub(super) struct DefaultTolerationSeconds;

impl Plugin for DefaultTolerationSeconds {
    fn admit<'a>(
        &'a self,
        request: Attributes<'a>,
        object: &'a mut dyn Object,
        _reader: &'a dyn Reader,
    ) -> Option<Step<'a>> {
        if request.operation != Operation::Create {
            return None;
        }
        let pod = object.downcast_mut::<Pod>()?;
        tolerations::add_defaults(&mut pod.spec.tolerations);
        None
    }
}
