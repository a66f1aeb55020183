//! Records the steps of plans, which the runtime of controllers logs.

use std::fmt::Debug;

use tracing::field::{Field, Visit};
use tracing::subscriber::DefaultGuard;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use crate::{Entry, Log, Planned};

/// The message of the log line of a step.
const MESSAGE: &str = "planned";

/// Records the steps of the plans of this thread in a log, until the guard is dropped.
#[must_use]
pub fn record_plans(log: &Log) -> DefaultGuard {
    let recorder = Recorder(log.clone());
    tracing::subscriber::set_default(tracing_subscriber::registry().with(recorder))
}

struct Recorder(Log);

impl<S: Subscriber> Layer<S> for Recorder {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event
            .metadata()
            .target()
            .starts_with("setpoint_controller::runtime")
        {
            let mut fields = Fields::default();
            event.record(&mut fields);
            if fields.message == MESSAGE {
                self.0.push(Entry::Planned(fields.planned));
            }
        }
    }
}

/// The fields of the log line.
#[derive(Default)]
struct Fields {
    message: String,
    planned: Planned,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        let planned = &mut self.planned;
        let place = match field.name() {
            "message" => &mut self.message,
            "controller" => &mut planned.controller,
            "object" => &mut planned.object,
            "action" => &mut planned.action,
            "because" => &mut planned.because,
            "woken_by" => &mut planned.woken_by,
            _ => return,
        };
        value.clone_into(place);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
