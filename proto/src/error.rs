//! One error, three surfaces: Kubernetes' reason, gRPC's code and HTTP's status meet in one table.

use prost::Message;
use tonic::{Code, Status};

use crate::Any;
use crate::meta::{self, StatusCause, StatusDetails};

/// The reaction to an error that is advised to callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The same call fails again.
    Never,
    /// Look at the newest state, decide anew.
    AfterRefresh,
    /// The same call may pass later.
    WithBackoff,
}

macro_rules! reasons {
    ($($reason:ident $http:literal $code:ident $retry:ident)*) => {
        /// Why a request failed, in Kubernetes' words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason { $(#[doc = concat!("HTTP ", stringify!($http), ".")] $reason),* }

        impl Reason {
            /// Every reason, in the table's order.
            pub const ALL: &[Self] = &[$(Self::$reason),*];
            /// Returns the name in a `Status`.
            pub const fn name(self) -> &'static str { match self { $(Self::$reason => stringify!($reason)),* } }
            /// The HTTP status.
            pub const fn http(self) -> u16 { match self { $(Self::$reason => $http),* } }
            /// The gRPC code.
            pub const fn code(self) -> Code { match self { $(Self::$reason => Code::$code),* } }
            /// Returns the advised reaction.
            pub const fn retry(self) -> Retry { match self { $(Self::$reason => Retry::$retry),* } }
        }
    };
}
reasons! {
//  reason                 HTTP gRPC               retry
    BadRequest             400  InvalidArgument    Never
    Unauthorized           401  Unauthenticated    Never
    Forbidden              403  PermissionDenied   Never
    NotFound               404  NotFound           Never
    MethodNotAllowed       405  Unimplemented      Never
    NotAcceptable          406  InvalidArgument    Never
    AlreadyExists          409  AlreadyExists      Never
    Conflict               409  Aborted            AfterRefresh
    Expired                410  OutOfRange         AfterRefresh
    RequestEntityTooLarge  413  InvalidArgument    Never
    UnsupportedMediaType   415  InvalidArgument    Never
    Invalid                422  InvalidArgument    Never
    TooManyRequests        429  ResourceExhausted  WithBackoff
    InternalError          500  Internal           WithBackoff
    ServiceUnavailable     503  Unavailable        WithBackoff
    Timeout                504  DeadlineExceeded   WithBackoff
}

/// The trailer that names the reason, since several reasons share a gRPC code.
const REASON: &str = "setpoint-reason";

/// A request that failed, as the caller should hear of it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The kind of failure.
    pub reason: Reason,
    /// One sentence, in Kubernetes' own wording where it has one.
    pub message: String,
    /// The object and the fields at fault.
    pub details: Option<Box<StatusDetails>>,
    /// Where a list that cannot go on as it began may go on otherwise: `metadata.continue` of the `Status`.
    pub continue_token: Option<Box<str>>,
}

impl ApiError {
    /// An error without details.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
        }
    }

    /// The same error, naming the object and the fields at fault.
    #[must_use]
    pub fn with_details(mut self, details: StatusDetails) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// The causes among the details; none without details.
    pub fn causes(&self) -> &[StatusCause] {
        self.details.as_ref().map_or(&[], |details| &details.causes)
    }

    /// Was the write refused because the writer's lease term has passed?
    pub fn is_fenced(&self) -> bool {
        self.causes().iter().any(|cause| cause.reason == FENCED)
    }

    /// Was a create refused because the namespace is being deleted? Every later one will be, too.
    pub fn is_namespace_terminating(&self) -> bool {
        self.causes()
            .iter()
            .any(|cause| cause.reason == NAMESPACE_TERMINATING)
    }

    /// The `Status` object that HTTP answers with.
    pub fn to_status(&self) -> meta::Status {
        let token = self.continue_token.as_deref().unwrap_or_default();
        meta::Status {
            metadata: meta::ListMeta {
                r#continue: token.to_owned(),
                ..Default::default()
            },
            status: "Failure".into(),
            message: self.message.clone(),
            reason: self.reason.name().into(),
            details: self.details.as_deref().cloned(),
            code: self.reason.http().into(),
        }
    }
}

/// The cause's reason by which a fenced writer knows that it leads no more.
pub const FENCED: &str = "Fenced";

/// The cause's reason by which a writer knows that nothing can be created in a namespace any more.
pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// `google.rpc.Status`: what gRPC tools look for in `grpc-status-details-bin`.
#[derive(Clone, PartialEq, Message)]
struct RichStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

const STATUS_URL: &str = "type.googleapis.com/k8s.meta.v1.Status";

impl From<ApiError> for Status {
    fn from(error: ApiError) -> Self {
        let rich = RichStatus {
            code: error.reason.code() as i32,
            message: error.message.clone(),
            details: vec![Any {
                type_url: STATUS_URL.to_owned(),
                value: error.to_status().encode_to_vec().into(),
            }],
        };
        let mut status = Self::with_details(
            error.reason.code(),
            error.message,
            rich.encode_to_vec().into(),
        );
        let name = error.reason.name().parse().expect("reasons are ASCII");
        status.metadata_mut().insert(REASON, name);
        status
    }
}

impl From<Status> for ApiError {
    /// The reason is taken from the trailer, else from the code; details where they were sent.
    fn from(status: Status) -> Self {
        let named = status
            .metadata()
            .get(REASON)
            .and_then(|name| name.to_str().ok());
        let by_name = |reason: &&Reason| Some(reason.name()) == named;
        let by_code = |reason: &&Reason| reason.code() == status.code();
        let all = Reason::ALL.iter();
        let reason = all.clone().find(by_name).or_else(|| {
            // A peer that went away in the middle of an answer is not a fault of the request.
            (!matches!(status.code(), Code::Unknown | Code::Cancelled))
                .then(|| all.clone().find(by_code))
                .flatten()
        });
        let fallback = match status.code() {
            Code::Unknown | Code::Cancelled => Reason::ServiceUnavailable,
            _ => Reason::InternalError,
        };
        let sent = object_of(&status).unwrap_or_default();
        let token = sent.metadata.r#continue;
        Self {
            reason: reason.copied().unwrap_or(fallback),
            message: status.message().to_owned(),
            details: sent.details.map(Box::new),
            continue_token: (!token.is_empty()).then(|| token.into()),
        }
    }
}

/// The `Status` object in gRPC's details.
fn object_of(status: &Status) -> Option<meta::Status> {
    let rich = RichStatus::decode(status.details()).ok()?;
    let any = rich
        .details
        .into_iter()
        .find(|any| any.type_url == STATUS_URL)?;
    meta::Status::decode(any.value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_survives_the_way_over_grpc_and_back() {
        for &reason in Reason::ALL {
            let mut sent = ApiError::new(reason, "because").with_details(StatusDetails {
                name: "web".into(),
                causes: vec![StatusCause {
                    reason: FENCED.into(),
                    ..Default::default()
                }],
                ..Default::default()
            });
            sent.continue_token = Some("-1/a/b".into());
            assert_eq!(sent.to_status().metadata.r#continue, "-1/a/b");
            let received = ApiError::from(Status::from(sent.clone()));
            assert_eq!(received, sent);
            assert!(received.is_fenced());
        }
    }

    #[test]
    fn a_foreign_code_becomes_the_nearest_reason() {
        let reason = |code| ApiError::from(Status::new(code, "")).reason;
        assert_eq!(reason(Code::NotFound), Reason::NotFound);
        assert_eq!(reason(Code::Aborted), Reason::Conflict);
        assert_eq!(reason(Code::Unknown), Reason::ServiceUnavailable);
        assert_eq!(reason(Code::DataLoss), Reason::InternalError);
    }
}
