//! The texts of enums.

use setpoint_proto::setpoint::{
    HistoryEnd, HistoryResponse, Reconcile, ReconcileOutcome, Version, WriteType,
};

#[test]
fn enums_are_printed_as_lowercase_words() {
    assert_eq!(ReconcileOutcome::NothingToDo.to_string(), "nothing to do");
    let reconcile = Reconcile {
        outcome: ReconcileOutcome::Gone.into(),
        ..Reconcile::default()
    };
    assert_eq!(serde_json::to_value(reconcile).unwrap()["outcome"], "gone");
    let version = Version {
        what: WriteType::Created.into(),
        ..Version::default()
    };
    let history = HistoryResponse {
        versions: vec![version],
        ends: HistoryEnd::Limit.into(),
        ..HistoryResponse::default()
    };
    let history = serde_json::to_value(history).unwrap();
    assert_eq!(
        (&history["ends"], &history["versions"][0]["what"]),
        (&"limit".into(), &"created".into())
    );
}
