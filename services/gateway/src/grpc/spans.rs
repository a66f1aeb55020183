//! The service `setpoint.v1.Spans`: which callers' spans have arrived.

use std::time::Duration;

use setpoint_host::{Callers, Reporter};
use setpoint_proto::setpoint::spans_server::Spans;
use setpoint_proto::setpoint::{SpansReport, SpansReported};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

/// How often to see whether something has been kept back for too long.
const SWEEP: Duration = Duration::from_secs(10);

/// The service over all callers.
pub(super) struct Service {
    callers: Callers,
}

impl Service {
    pub(super) fn new(callers: Callers) -> Self {
        Self { callers }
    }
}

#[tonic::async_trait]
impl Spans for Service {
    async fn report(
        &self,
        request: Request<Streaming<SpansReport>>,
    ) -> Result<Response<SpansReported>, Status> {
        let stop = request.extensions().get::<CancellationToken>();
        let stop = stop.cloned().unwrap_or_default();
        let mut reports = request.into_inner();
        if let Some(first) = reports.message().await? {
            let reporter = self.callers.meet(first.caller);
            let followed = stop.run_until_cancelled(follow(&mut reports, &reporter));
            followed.await.unwrap_or(Ok(()))?;
            reporter.leave();
        }
        Ok(Response::new(SpansReported {}))
    }
}

/// Until the caller ends it in good order; with any other end it was cut off.
async fn follow(reports: &mut Streaming<SpansReport>, reporter: &Reporter) -> Result<(), Status> {
    loop {
        match timeout(SWEEP, reports.message()).await {
            Ok(Ok(Some(report))) => reporter.exported(&report.exported),
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(cut_off)) => return Err(cut_off),
            Err(_) => reporter.give_up(),
        }
    }
}
