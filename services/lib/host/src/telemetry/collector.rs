//! An OpenTelemetry collector, spoken to by OTLP over gRPC.

use bytes::{BufMut as _, Bytes};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use prost::Message;
use tonic::client::Grpc;
use tonic::codec::{Codec, EncodeBuf, Encoder};
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

/// The field of `ExportTraceServiceRequest` that has the spans of a resource.
const RESOURCE_SPANS: u32 = 1;
/// The field of `ResourceSpans` that has the spans of a scope.
const SCOPE_SPANS: u32 = 2;

/// Spans as they travel. Cheap to clone.
///
/// The wire knows no difference between a message and its bytes: this is an `ExportTraceServiceRequest` whose spans, and
/// what is around them, are encoded already.
#[derive(Clone)]
pub(super) struct Parcel {
    /// All that comes before the spans.
    head: Bytes,
    spans: Bytes,
}

/// Sends parcels as they are.
struct Packed;

type Answer = ProstCodec<(), ExportTraceServiceResponse>;

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
    pub fn pack(&self, spans: Vec<u8>) -> Parcel {
        let mut inner = self.resource.clone();
        wire::head(SCOPE_SPANS, self.scope.len() + spans.len(), &mut inner);
        inner.extend_from_slice(&self.scope);
        let mut head = Vec::new();
        wire::head(RESOURCE_SPANS, inner.len() + spans.len(), &mut head);
        head.extend_from_slice(&inner);
        Parcel {
            head: head.into(),
            spans: spans.into(),
        }
    }

    /// Sends it, within the endpoint's time limit.
    pub async fn take(&self, parcel: Parcel) -> Result<(), Refusal> {
        let mut request = Request::new(parcel);
        *request.metadata_mut() = self.headers.clone();
        let path = PathAndQuery::from_static(EXPORT);
        let mut client = Grpc::new(self.channel.clone());
        if let Err(error) = client.ready().await {
            return Err(Refusal::ForNow(Status::unavailable(error.to_string())));
        }
        let answer = client.unary(request, path, Packed).await;
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

impl Codec for Packed {
    type Encode = Parcel;
    type Decode = ExportTraceServiceResponse;
    type Encoder = Self;
    type Decoder = <Answer as Codec>::Decoder;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self::Decoder {
        Answer::default().decoder()
    }
}

impl Encoder for Packed {
    type Item = Parcel;
    type Error = Status;

    fn encode(
        &mut self,
        Parcel { head, spans }: Parcel,
        to: &mut EncodeBuf<'_>,
    ) -> Result<(), Status> {
        to.reserve(head.len() + spans.len());
        to.put(head);
        to.put(spans);
        Ok(())
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
