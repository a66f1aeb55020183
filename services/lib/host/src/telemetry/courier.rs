//! Brings spans from the outbox to the collector.

use std::time::Duration;

use setpoint_proto::exported;
use tokio::select;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use super::batch::Batch;
use super::collector::{Collector, Parcel, Refusal};
use super::outbox::Outbox;

/// How long a collector that is away is left in peace.
const PAUSE: Duration = Duration::from_secs(1);

/// Says once that the collector is away, and once that it is back.
///
/// While it is away, spans wait, and more than can wait are dropped: telemetry never holds up the work it tells of.
pub(super) struct Courier {
    outbox: Outbox,
    collector: Collector,
    missed: bool,
}

impl Courier {
    pub fn between(outbox: Outbox, collector: Collector) -> Self {
        Self {
            outbox,
            collector,
            missed: false,
        }
    }

    /// Until the outbox is closed, and empty unless the collector is away.
    pub async fn run(mut self) {
        while let Some(batch) = self.outbox.batch().await {
            let Batch { spans, calls, .. } = batch;
            let parcel = self.collector.pack(spans);
            if self.deliver(parcel).await && !calls.is_empty() {
                exported::tell(calls.into());
            }
            if let dropped @ 1.. = self.outbox.dropped() {
                warn!(dropped, "spans came faster than they could be exported");
            }
        }
    }

    /// Whether it was taken.
    async fn deliver(&mut self, parcel: Parcel) -> bool {
        loop {
            match self.collector.take(parcel.clone()).await {
                Ok(()) => {
                    self.found();
                    return true;
                }
                Err(Refusal::Forever(error)) => {
                    self.miss(&error);
                    return false;
                }
                Err(Refusal::ForNow(error)) => self.miss(&error),
            }
            select! {
                () = sleep(PAUSE) => {}
                () = self.outbox.closed() => return false,
            }
        }
    }

    fn miss(&mut self, error: &tonic::Status) {
        match self.missed {
            false => warn!(%error, "spans cannot be exported"),
            true => debug!(%error, "spans still cannot be exported"),
        }
        self.missed = true;
    }

    fn found(&mut self) {
        if self.missed {
            info!("spans are exported again");
        }
        self.missed = false;
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::Context;
    use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
        TraceService, TraceServiceServer,
    };
    use opentelemetry_proto::tonic::collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
    };
    use opentelemetry_sdk::Resource;
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;
    use tonic::metadata::MetadataMap;
    use tonic::transport::server::TcpIncoming;
    use tonic::transport::{Endpoint, Server};
    use tonic::{Request, Response, Status};

    use super::*;
    use crate::telemetry::outbox::Pace;
    use crate::telemetry::parts::Parts;
    use crate::telemetry::told::Pen;

    /// Refuses spans of some names, and says which it was sent by whom.
    struct Moody(mpsc::UnboundedSender<String>);

    #[tonic::async_trait]
    impl TraceService for Moody {
        async fn export(
            &self,
            request: Request<ExportTraceServiceRequest>,
        ) -> Result<Response<ExportTraceServiceResponse>, Status> {
            let tenant = request
                .metadata()
                .get("tenant")
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let request = request.into_inner();
            let name = &request.resource_spans[0].scope_spans[0].spans[0].name;
            self.0.send(format!("{tenant} {name}")).unwrap();
            match name.as_str() {
                "away" => Err(Status::unavailable("restarting")),
                "wrong" => Err(Status::invalid_argument("unheard of")),
                _ => Ok(Response::new(ExportTraceServiceResponse::default())),
            }
        }
    }

    async fn served() -> (Courier, Outbox, mpsc::UnboundedReceiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (asked, answers) = mpsc::unbounded_channel();
        let server = Server::builder().add_service(TraceServiceServer::new(Moody(asked)));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        let outbox = Outbox::new(Pace {
            delay: Duration::from_millis(1),
            queue: 10,
            batch: 1,
        });
        let endpoint = Endpoint::from_shared(address).unwrap();
        let mut headers = MetadataMap::new();
        headers.insert("tenant", "us".parse().unwrap());
        let collector = Collector::at(&endpoint, headers, &Resource::builder_empty().build());
        let courier = Courier::between(outbox.clone(), collector);
        (courier, outbox, answers)
    }

    fn put(outbox: &Outbox, names: &[&'static str]) {
        let pen = Pen::through(Parts::before(outbox.clone()));
        for name in names {
            pen.draw(name, &Context::new());
        }
    }

    #[tokio::test]
    async fn what_is_wrong_is_dropped_and_what_is_early_is_sent_again() {
        let (courier, outbox, mut asked) = served().await;
        put(&outbox, &["wrong", "right", "away", "lost"]);
        let courier = tokio::spawn(courier.run());
        for name in ["wrong", "right", "away", "away"] {
            assert_eq!(asked.recv().await, Some(format!("us {name}")));
        }
        outbox.close();
        courier.await.unwrap();
        // With a collector that is away, each of the last batches is tried once.
        assert_eq!(asked.recv().await.as_deref(), Some("us lost"));
    }
}
