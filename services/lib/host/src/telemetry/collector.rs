//! An OpenTelemetry collector, spoken to by OTLP over gRPC.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::ScopeSpans;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::encoded::Encoded;

/// The name of the tracer that all spans are from.
pub(super) const SCOPE: &str = "setpoint";

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Where spans go, and in whose name.
pub(super) struct Collector {
    channel: Channel,
    headers: MetadataMap,
    resource: Resource,
}

/// Spans as they travel. Cheap to clone.
///
/// The wire knows no difference between a message and its bytes: this is an `ExportTraceServiceRequest` whose spans, and
/// what is around them, are encoded already.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Parcel {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    resource_spans: Vec<bytes::Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    scope_spans: Vec<Vec<u8>>,
}

/// The field of OTLP's `ScopeSpans` that has the spans.
const SPANS: u32 = 2;

/// Why spans were not taken.
pub(super) enum Refusal {
    /// Another attempt may do better.
    ForNow(Status),
    /// It was these spans that it did not like.
    Forever(Status),
}

impl Collector {
    /// Connects when there is something to send.
    pub fn at(
        endpoint: &Endpoint,
        headers: MetadataMap,
        resource: &opentelemetry_sdk::Resource,
    ) -> Self {
        let attributes = ResourceAttributesWithSchema::from(resource).attributes;
        Self {
            channel: endpoint.connect_lazy(),
            headers,
            resource: Resource {
                attributes: attributes.0,
                ..Resource::default()
            },
        }
    }

    /// Makes one request of spans.
    pub fn pack(&self, batch: &[Encoded]) -> Parcel {
        let scope = ScopeSpans {
            scope: Some(InstrumentationScope {
                name: SCOPE.to_owned(),
                ..InstrumentationScope::default()
            }),
            ..ScopeSpans::default()
        };
        let mut spans = scope.encode_to_vec();
        batch.iter().for_each(|span| span.put(SPANS, &mut spans));
        let spans = ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![spans],
        };
        Parcel {
            resource_spans: vec![spans.encode_to_vec().into()],
        }
    }

    /// Sends it, within the endpoint's time limit.
    pub async fn take(&self, parcel: Parcel) -> Result<(), Refusal> {
        let mut request = Request::new(parcel);
        *request.metadata_mut() = self.headers.clone();
        let path = PathAndQuery::from_static(EXPORT);
        let codec = ProstCodec::<Parcel, ExportTraceServiceResponse>::default();
        let mut client = Grpc::new(self.channel.clone());
        if let Err(error) = client.ready().await {
            return Err(Refusal::ForNow(Status::unavailable(error.to_string())));
        }
        let answer = client.unary(request, path, codec).await;
        let answer = answer.map_err(refusal)?.into_inner();
        match answer.partial_success {
            Some(partial) if partial.rejected_spans > 0 => {
                let why = format!(
                    "{} of them: {}",
                    partial.rejected_spans, partial.error_message
                );
                Err(Refusal::Forever(Status::invalid_argument(why)))
            }
            _ => Ok(()),
        }
    }
}

/// As OTLP sorts them (<https://opentelemetry.io/docs/specs/otlp/#failures>).
fn refusal(status: Status) -> Refusal {
    match status.code() {
        Code::Cancelled
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unavailable
        | Code::DataLoss => Refusal::ForNow(status),
        _ => Refusal::Forever(status),
    }
}
