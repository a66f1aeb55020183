//! An Event's cells.

use jiff::Timestamp;
use serde_json::Value;
use setpoint_proto::core::Event;

use super::{Cells, age};

impl Cells for Event {
    fn cell(&self, column: &str, now: Timestamp) -> Option<Value> {
        Some(match column {
            "Last Seen" => age::since(last_seen(self), now).into(),
            "First Seen" => age::since(first_seen(self), now).into(),
            "Object" => {
                let object = &self.involved_object;
                format!("{}/{}", object.kind.to_lowercase(), object.name).into()
            }
            "Subobject" => self.involved_object.field_path.clone().into(),
            "Source" => source(self).into(),
            "Message" => self.message.trim().into(),
            "Count" => count(self).into(),
            _ => return None,
        })
    }
}

fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref();
    series
        .and_then(|series| series.last_observed_time.timestamp())
        .or_else(|| event.last_timestamp.timestamp())
        .or_else(|| event.event_time.timestamp())
}

fn first_seen(event: &Event) -> Option<Timestamp> {
    let first = event.first_timestamp.timestamp();
    first.or_else(|| event.event_time.timestamp())
}

fn source(event: &Event) -> String {
    let component = match event.source.component.as_str() {
        "" => event.reporting_component.as_str(),
        component => component,
    };
    let host = match event.source.host.as_str() {
        "" => event.reporting_instance.as_str(),
        host => host,
    };
    match host {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}

/// An event told once may count itself as none.
fn count(event: &Event) -> i32 {
    let series = event.series.as_ref().map(|series| series.count);
    series.unwrap_or(event.count).max(1)
}
