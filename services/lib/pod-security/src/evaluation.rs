//! The evaluation of a Pod.

use setpoint_proto::core::PodSpec;
use setpoint_proto::meta::ObjectMeta;

use crate::checks::{self, NEWEST};
use crate::{Level, LevelVersion, Version, Violations};

/// Compares a Pod, or the template of one, with a level. Of its metadata, annotations count.
///
/// A version later than the newest revision of a check is as the latest one: a namespace may name a version that this
/// gateway does not know yet.
pub fn evaluate(against: LevelVersion, meta: &ObjectMeta, spec: &PodSpec) -> Violations {
    if against.level == Level::Privileged {
        return Violations::default();
    }
    let minor = match against.version {
        Version::Minor(minor) => minor.min(NEWEST),
        Version::Latest => NEWEST,
    };
    let applicable = checks::of(against.level, minor);
    applicable.filter_map(|run| run(meta, spec)).collect()
}
