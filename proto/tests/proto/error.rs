//! Errors as statuses of gRPC, and back.

use setpoint_proto::meta::{StatusCause, StatusDetails};
use setpoint_proto::{ApiError, FENCED, Reason, StatusOverride};
use tonic::{Code, Status};

#[test]
fn every_error_round_trips_through_a_grpc_status() {
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
fn the_verdict_of_a_webhook_round_trips_through_a_grpc_status() {
    let mut sent = ApiError::new(Reason::BadRequest, "no tea");
    sent.status_override = Some(Box::new(StatusOverride {
        code: 418,
        reason: String::new(),
    }));
    let status = sent.to_status();
    assert_eq!((status.code, status.reason.as_str()), (418, ""));
    let received = ApiError::from(Status::from(sent.clone()));
    assert_eq!(received, sent);
}

#[test]
fn a_status_without_the_trailer_has_the_reason_of_its_code() {
    let reason = |code| ApiError::from(Status::new(code, "")).reason;
    assert_eq!(reason(Code::NotFound), Reason::NotFound);
    assert_eq!(reason(Code::Aborted), Reason::Conflict);
    assert_eq!(reason(Code::Unknown), Reason::ServiceUnavailable);
    assert_eq!(reason(Code::DataLoss), Reason::InternalError);
}
