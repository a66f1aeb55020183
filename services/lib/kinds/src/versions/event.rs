//! The Event of events.k8s.io/v1: the core group's Event with other names of fields, and stricter rules for writers.

use jiff::Timestamp;
use setpoint_model::names;
use setpoint_proto::meta::MicroTime;
use setpoint_proto::{core, events};

use crate::validation::field_errors::FieldErrors;
use crate::validation::field_path::FieldPath;
use crate::versions::Version;

const TYPES: [&str; 2] = ["Normal", "Warning"];

impl Version for events::Event {
    type Stored = core::Event;

    fn into_stored(self) -> core::Event {
        core::Event {
            metadata: self.metadata,
            involved_object: self.regarding,
            reason: self.reason,
            message: self.note,
            source: self.deprecated_source,
            first_timestamp: self.deprecated_first_timestamp,
            last_timestamp: self.deprecated_last_timestamp,
            count: self.deprecated_count,
            r#type: self.r#type,
            event_time: self.event_time,
            series: self.series.map(|series| core::EventSeries {
                count: series.count,
                last_observed_time: series.last_observed_time,
            }),
            action: self.action,
            related: self.related,
            reporting_component: self.reporting_controller,
            reporting_instance: self.reporting_instance,
        }
    }

    fn of_stored(stored: core::Event) -> Self {
        Self {
            metadata: stored.metadata,
            event_time: stored.event_time,
            series: stored.series.map(|series| events::EventSeries {
                count: series.count,
                last_observed_time: series.last_observed_time,
            }),
            reporting_controller: stored.reporting_component,
            reporting_instance: stored.reporting_instance,
            action: stored.action,
            reason: stored.reason,
            regarding: stored.involved_object,
            related: stored.related,
            note: stored.message,
            r#type: stored.r#type,
            deprecated_source: stored.source,
            deprecated_first_timestamp: stored.first_timestamp,
            deprecated_last_timestamp: stored.last_timestamp,
            deprecated_count: stored.count,
        }
    }

    fn validate_create(new: &core::Event, errors: &mut FieldErrors) {
        let metadata = FieldPath::root("metadata");
        let name = &new.metadata.name;
        errors.check(&metadata.field("name"), name, names::validate_dns_subdomain);
        validate_series(new.series.as_ref(), errors);
        if new.event_time.timestamp().is_none() {
            errors.required(&FieldPath::root("eventTime"), "");
        }
        if !TYPES.contains(&new.r#type.as_str()) {
            let detail = format!("has invalid value: {}", new.r#type);
            errors.invalid(&FieldPath::root("type"), "", detail);
        }
        let source = &new.source;
        for (field, is_set) in [
            ("firstTimestamp", new.first_timestamp.timestamp().is_some()),
            ("lastTimestamp", new.last_timestamp.timestamp().is_some()),
            ("count", new.count != 0),
            (
                "source",
                !(source.component.is_empty() && source.host.is_empty()),
            ),
        ] {
            if is_set {
                errors.invalid(&FieldPath::root(field), "", "needs to be unset");
            }
        }
    }

    fn validate_update(new: &core::Event, old: &core::Event, errors: &mut FieldErrors) {
        if new.series != old.series {
            validate_series(new.series.as_ref(), errors);
        }
        macro_rules! immutable {
            ($($path:literal $field:ident,)*) => {$(
                errors.immutable(&FieldPath::root($path), &new.$field, &old.$field);
            )*};
        }
        immutable! {
            "involvedObject" involved_object,
            "reason" reason,
            "message" message,
            "source" source,
            "firstTimestamp" first_timestamp,
            "lastTimestamp" last_timestamp,
            "count" count,
            "type" r#type,
        }
        if microseconds(&new.event_time) != microseconds(&old.event_time) {
            let path = FieldPath::root("eventTime");
            errors.immutable(&path, &new.event_time, &old.event_time);
        }
        immutable! {
            "action" action,
            "related" related,
            "reportingController" reporting_component,
            "reportingInstance" reporting_instance,
        }
    }
}

fn validate_series(series: Option<&core::EventSeries>, errors: &mut FieldErrors) {
    let Some(series) = series else { return };
    if series.count < 2 {
        let path = FieldPath::root("series.count");
        errors.invalid(&path, "", "should be at least 2");
    }
    if series.last_observed_time.timestamp().is_none() {
        errors.required(&FieldPath::root("series.lastObservedTime"), "");
    }
}

/// Returns a time in the precision that its JSON has.
fn microseconds(time: &MicroTime) -> Option<i64> {
    time.timestamp().map(Timestamp::as_microsecond)
}
