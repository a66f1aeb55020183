//! An OpenTelemetry collector, spoken to by OTLP over gRPC.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use super::wire;

/// The name that all spans are in.
const SCOPE: &str = "setpoint";

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Where spans go, and in whose name.
pub(super) struct Collector {
    channel: Channel,
    headers: MetadataMap,
    /// The field `resource` of `ResourceSpans`.
    resource: Vec<u8>,
    /// The field `scope` of `ScopeSpans`.
    scope: Vec<u8>,
}

/// The field of `ResourceSpans` that has the spans of a scope.
const SCOPE_SPANS: u32 = 2;
/// What comes before a field's bytes is no longer than this.
const HEAD: usize = 11;

/// Spans as they travel. Cheap to clone.
///
/// The wire knows no difference between a message and its bytes: this is an `ExportTraceServiceRequest` whose spans, and
/// what is around them, are encoded already.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Parcel {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    resource_spans: Vec<bytes::Bytes>,
}

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
        let resource = ResourceSpans {
            resource: Some(Resource {
                attributes: attributes.0,
                ..Resource::default()
            }),
            ..ResourceSpans::default()
        };
        let scope = ScopeSpans {
            scope: Some(InstrumentationScope {
                name: SCOPE.to_owned(),
                ..InstrumentationScope::default()
            }),
            ..ScopeSpans::default()
        };
        Self {
            channel: endpoint.connect_lazy(),
            headers,
            resource: resource.encode_to_vec(),
            scope: scope.encode_to_vec(),
        }
    }

    /// Makes a request of spans that follow one another as in `ScopeSpans`.
    pub fn pack(&self, spans: &[u8]) -> Parcel {
        let length = self.scope.len() + spans.len();
        let mut message = self.resource.clone();
        message.reserve_exact(HEAD + length);
        wire::head(SCOPE_SPANS, length, &mut message);
        message.extend_from_slice(&self.scope);
        message.extend_from_slice(spans);
        Parcel {
            resource_spans: vec![message.into()],
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
