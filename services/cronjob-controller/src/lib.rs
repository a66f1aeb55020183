//! The CronJob controller: creates a Job for each scheduled time, and deletes old Jobs.
//!
//! The name of a Job is made of the CronJob's name and its scheduled minute, so that a time has at most one Job,
//! however often its creation is tried. Jobs are known by their owner reference; `status.active` has those that are not
//! finished.

mod act;
mod cronjob;
mod events;
mod job;
mod plan;
mod reconciler;
mod schedules;
mod status;
mod ticks;
mod world;

pub use act::new_job;
pub use cronjob::{CronJobView, Policy};
pub use events::Note;
pub use job::{JobView, Outcome};
pub use plan::{Action, BURST, plan};
pub use reconciler::{CONTROLLER, CronJobs};
pub use schedules::Schedules;
pub use status::status;
pub use ticks::{Missed, Never, Ticks};
pub use world::World;
