//! Creates each container once, by name, even if answers of the engine are lost.
//!
//! Each request has an identity, a label of its container. So a container that the engine has under this name is known
//! to be that of the request, whose answer was lost or which has arrived twice, or that of an earlier one.

use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, ContainerInspectResponse};
use bollard::query_parameters::CreateContainerOptionsBuilder;
use uuid::Uuid;

use super::Shared;

/// The label with the identity of the request.
const REQUEST: &str = "setpoint.dev/request";

/// A container of the engine with the requested name.
#[derive(Debug)]
pub(super) struct Created {
    /// The engine's id.
    pub(super) runtime_id: String,
    /// Whether an earlier request has created it.
    pub(super) is_earlier: bool,
}

impl Shared {
    /// Creates a container. A container of this name that an earlier request has created is returned if `is_kept`, and
    /// replaced if not.
    pub(super) async fn create_named(
        &self,
        name: &str,
        mut body: ContainerCreateBody,
        is_kept: impl Fn(&ContainerInspectResponse) -> bool + Send,
    ) -> Result<Created, Error> {
        let request = Uuid::new_v4().to_string();
        let labels = body.labels.get_or_insert_default();
        labels.insert(REQUEST.to_owned(), request.clone());
        let client = &self.engine.client;
        let mut replaced = false;
        loop {
            let options = CreateContainerOptionsBuilder::default().name(name).build();
            let created = client.create_container(Some(options), body.clone()).await;
            let error = match created {
                Ok(created) => return Ok(Created::of(created.id, false)),
                Err(error) => error,
            };
            let Ok(there) = client.inspect_container(name, None).await else {
                return Err(error);
            };
            let is_own = request_of(&there) == Some(request.as_str());
            let is_kept = !is_own && is_kept(&there);
            let runtime_id = there.id.unwrap_or_default();
            if is_own || is_kept {
                return Ok(Created::of(runtime_id, is_kept));
            }
            if replaced || !is_conflict(&error) {
                return Err(error);
            }
            self.remove_container(&runtime_id).await?;
            replaced = true;
        }
    }
}

impl Created {
    fn of(runtime_id: String, is_earlier: bool) -> Self {
        Self {
            runtime_id,
            is_earlier,
        }
    }
}

fn request_of(container: &ContainerInspectResponse) -> Option<&str> {
    let labels = container.config.as_ref()?.labels.as_ref()?;
    labels.get(REQUEST).map(String::as_str)
}

pub(super) fn is_conflict(error: &Error) -> bool {
    matches!(
        error,
        Error::DockerResponseServerError {
            status_code: 409,
            ..
        }
    )
}
