//! The service `setpoint.v1.Rounds`.

use setpoint_proto::setpoint::rounds_server::Rounds;
use setpoint_proto::setpoint::{RoundsRequest, RoundsResponse};
use tonic::{Request, Response, Status};

use super::DecisionLog;

/// Nobody asks about more objects at once: a Deployment, its sets, and its Pods that are not ready.
const SUBJECTS: usize = 64;

#[tonic::async_trait]
impl Rounds for DecisionLog {
    async fn of(
        &self,
        request: Request<RoundsRequest>,
    ) -> Result<Response<RoundsResponse>, Status> {
        let mut subjects = request.into_inner().subjects;
        subjects.truncate(SUBJECTS);
        Ok(Response::new(RoundsResponse {
            controller: self.shared.service.clone(),
            instance: self.shared.instance.clone(),
            rounds: Self::of(self, &subjects),
        }))
    }
}
