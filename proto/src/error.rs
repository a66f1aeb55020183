//! The error type, with one table of Kubernetes' reasons, gRPC codes and HTTP statuses.

use prost::Message;
use tonic::{Code, Status};

use crate::Any;
use crate::meta::{self, StatusCause, StatusDetails};

/// The recommended reaction of callers to an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Do not retry: the same call would fail again.
    Never,
    /// Read the newest state and compute the write again.
    AfterRefresh,
    /// Retry the same call, with backoff.
    WithBackoff,
}

macro_rules! reasons {
    ($($reason:ident $http:literal $code:ident $retry:ident)*) => {
        /// The reason of a failed request, as named by Kubernetes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason { $(#[doc = concat!("HTTP ", stringify!($http), ".")] $reason),* }

        impl Reason {
            /// All reasons, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$reason),*];
            /// Returns the name in a `Status`.
            pub const fn name(self) -> &'static str { match self { $(Self::$reason => stringify!($reason)),* } }
            /// Returns the HTTP status.
            pub const fn http(self) -> u16 { match self { $(Self::$reason => $http),* } }
            /// Returns the gRPC code.
            pub const fn code(self) -> Code { match self { $(Self::$reason => Code::$code),* } }
            /// Returns the recommended reaction.
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

/// The trailer with the reason. Several reasons share a gRPC code.
const REASON: &str = "setpoint-reason";

/// The error of a request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The reason.
    pub reason: Reason,
    /// The message, in the wording of Kubernetes where it has one.
    pub message: String,
    /// The object and the fields that caused the error.
    pub details: Option<Box<StatusDetails>>,
    /// `metadata.continue` of the `Status`: the token with which an expired list can be continued at the newest
    /// revision.
    pub continue_token: Option<Box<str>>,
    /// The code and the reason of the `Status` where they are not those of `reason`: a webhook chooses them freely.
    pub status_override: Option<Box<StatusOverride>>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
}

/// The code and the reason of a `Status`, where they are not those of a [`Reason`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusOverride {
    /// The HTTP status.
    pub code: u16,
    /// The reason; may be empty.
    pub reason: String,
}

impl ApiError {
    /// Returns an error without details.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
            status_override: None,
            warnings: Vec::new(),
        }
    }

    /// Returns the HTTP status.
    pub fn code(&self) -> u16 {
        let chosen = self.status_override.as_ref().map(|status| status.code);
        chosen.unwrap_or_else(|| self.reason.http())
    }

    /// Sets the details.
    #[must_use]
    pub fn with_details(mut self, details: StatusDetails) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Returns the causes in the details.
    pub fn causes(&self) -> &[StatusCause] {
        self.details.as_ref().map_or(&[], |details| &details.causes)
    }

    /// Returns whether a write was rejected because the lease term of its fence has ended.
    pub fn is_fenced(&self) -> bool {
        self.causes().iter().any(|cause| cause.reason == FENCED)
    }

    /// Returns whether a create was rejected because the namespace is being deleted. Later creates will be rejected,
    /// too.
    pub fn is_namespace_terminating(&self) -> bool {
        self.causes()
            .iter()
            .any(|cause| cause.reason == NAMESPACE_TERMINATING)
    }

    /// Returns the `Status` object of HTTP responses.
    pub fn to_status(&self) -> meta::Status {
        let token = self.continue_token.as_deref().unwrap_or_default();
        meta::Status {
            metadata: meta::ListMeta {
                r#continue: token.to_owned(),
                ..Default::default()
            },
            status: "Failure".into(),
            message: self.message.clone(),
            reason: match &self.status_override {
                Some(status_override) => status_override.reason.clone(),
                None => self.reason.name().into(),
            },
            details: self.details.as_deref().cloned(),
            code: self.code().into(),
        }
    }
}

/// The reason of the cause in errors of fenced writes. The writer is no longer the leader.
pub const FENCED: &str = "Fenced";

/// The reason of the cause in errors of creates in a namespace that is being deleted.
pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// A part of the message of errors about a stored value that could not be decrypted, as upstream. Nothing else in them
/// tells it from one that is corrupt.
pub const NOT_TRANSFORMABLE: &str = "data from the storage is not transformable";

/// `google.rpc.Status`, the format of `grpc-status-details-bin`.
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
    /// Takes the reason from the trailer or else from the code, and the details if there are any.
    fn from(status: Status) -> Self {
        let named = status
            .metadata()
            .get(REASON)
            .and_then(|name| name.to_str().ok());
        let by_name = |reason: &&Reason| Some(reason.name()) == named;
        let by_code = |reason: &&Reason| reason.code() == status.code();
        let all = Reason::ALL.iter();
        let reason = all.clone().find(by_name).or_else(|| {
            // The peer failed during the response; the request is not at fault.
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
        let reason = reason.copied().unwrap_or(fallback);
        let code = u16::try_from(sent.code).unwrap_or_default();
        let is_chosen = code != 0 && (code != reason.http() || sent.reason != reason.name());
        Self {
            reason,
            message: status.message().to_owned(),
            details: sent.details.map(Box::new),
            continue_token: (!token.is_empty()).then(|| token.into()),
            status_override: is_chosen.then(|| {
                let reason = sent.reason;
                Box::new(StatusOverride { code, reason })
            }),
            warnings: Vec::new(),
        }
    }
}

/// Returns the `Status` object in the details.
fn object_of(status: &Status) -> Option<meta::Status> {
    let rich = RichStatus::decode(status.details()).ok()?;
    let any = rich
        .details
        .into_iter()
        .find(|any| any.type_url == STATUS_URL)?;
    meta::Status::decode(any.value).ok()
}
