//! Act: one write for each action.

use setpoint_controller::Client;
use setpoint_controller::client::Preconditions;
use setpoint_model::Key;
use setpoint_proto::discovery::EndpointSlice;
use setpoint_proto::{ApiError, Reason};

use super::NAMESPACE;
use super::plan::Action;

/// Executes an action. What another replica, or an earlier attempt, has done already is no error.
pub async fn act(client: &Client, action: &Action) -> Result<(), ApiError> {
    let done = match action {
        Action::CreateService(service) => client.create(&**service).await.map(drop),
        Action::CreateSlice(slice) => client.create(&**slice).await.map(drop),
        Action::UpdateSlice(slice) => client.update(&**slice).await.map(drop),
        Action::DeleteSlice { name, uid } => {
            let key = Key::new(NAMESPACE, name);
            let same = Preconditions::uid(uid);
            client
                .delete::<EndpointSlice>(&key, same, None)
                .await
                .map(drop)
        }
    };
    match done {
        Err(error) if is_done_already(action, error.reason) => Ok(()),
        done => done,
    }
}

fn is_done_already(action: &Action, reason: Reason) -> bool {
    match action {
        Action::CreateService(_) | Action::CreateSlice(_) => reason == Reason::AlreadyExists,
        // The cache will have the version that won.
        Action::UpdateSlice(_) => [Reason::Conflict, Reason::NotFound].contains(&reason),
        Action::DeleteSlice { .. } => [Reason::Conflict, Reason::NotFound].contains(&reason),
    }
}
