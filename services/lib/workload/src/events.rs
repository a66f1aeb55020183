//! Events about Pods that a workload creates and deletes, with the reasons and messages of upstream.

use setpoint_controller::{Receipt, Recorder, events};
use setpoint_proto::ApiError;
use setpoint_proto::core::ObjectReference;

/// A write to a Pod of this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodWrite<'a> {
    /// It is created.
    Create(&'a str),
    /// It is deleted.
    Delete(&'a str),
}

impl PodWrite<'_> {
    /// Records the result of the write. Errors that the next reconcile resolves are not recorded.
    pub fn record(
        self,
        events: &Recorder,
        about: &ObjectReference,
        result: &Result<Receipt, ApiError>,
    ) {
        let (verb, past, gerund, pod) = match self {
            Self::Create(pod) => ("Create", "Created", "creating", pod),
            Self::Delete(pod) => ("Delete", "Deleted", "deleting", pod),
        };
        match result {
            Ok(_) => events.normal(
                about,
                &format!("Successful{verb}"),
                format!("{past} pod: {pod}"),
            ),
            Err(error) if events::is_reported(error) => {
                events.warning(
                    about,
                    &format!("Failed{verb}"),
                    format!("Error {gerund}: {error}"),
                );
            }
            Err(_) => {}
        }
    }
}
