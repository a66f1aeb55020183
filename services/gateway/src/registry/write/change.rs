//! A change of a stored object, and the request that policies judge it as.

use setpoint_codec::Object;
use setpoint_proto::ApiError;
use setpoint_proto::meta::DeleteOptions;

use crate::admission::{Attributes, Operation};
use crate::registry::conversion::Ownership;
use crate::registry::verbs::scale;
use crate::registry::write::current::Current;
use crate::registry::{Registry, RequestContext, Subresource, Target};

/// A change of an object.
pub(crate) struct Change<'a> {
    /// The object of the request, if `mutate` needs it.
    pub slot: Option<Box<dyn Object>>,
    /// The size of the request, which `mutate` processes besides the object.
    pub bytes: usize,
    pub ownership: Ownership,
    /// `None` for a part of a request that was admitted as a whole.
    pub admission: Option<Admission<'a>>,
}

/// The request that policies judge.
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
            slot: None,
            bytes,
            ownership: Ownership::Taken,
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
            slot: None,
            bytes: 0,
            ownership: Ownership::Taken,
            admission: None,
        }
    }
}

impl Registry {
    /// Lets the policies judge a change. Returns their warnings.
    pub(super) async fn admit_change(
        &self,
        context: &RequestContext,
        admission: &Admission<'_>,
        old: &Current,
        new: &dyn Object,
    ) -> Result<Vec<String>, ApiError> {
        let Some(policies) = self.policies_for(admission.target).await? else {
            return Ok(Vec::new());
        };
        let target = admission.target;
        let form = |object: &dyn Object| -> Result<Box<dyn Object>, ApiError> {
            let mut object = object.clone_box();
            object.meta_mut().resource_version = old.revision.to_string();
            Ok(match target.subresource {
                Subresource::Scale => Box::new(scale::of(&*object)?),
                _ => object,
            })
        };
        let was = form(&*old.object)?;
        let is = match admission.operation {
            Operation::Delete => None,
            _ => Some(form(new)?),
        };
        let attributes = Attributes {
            context,
            target,
            operation: admission.operation,
            object: is.as_deref(),
            old: Some(&*was),
            options: admission.options,
        };
        self.admit(&attributes, &policies).await
    }
}
