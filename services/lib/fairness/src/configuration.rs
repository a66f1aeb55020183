//! The schemas and levels in force, from the objects that configure them.

use std::collections::BTreeMap;

use setpoint_proto::flowcontrol::{
    FlowSchema, FlowSchemaCondition, FlowSchemaSpec, PriorityLevelConfiguration,
    PriorityLevelConfigurationSpec,
};

use crate::limits::{Limits, max_seats};
use crate::queue_set::Queuing;

/// The type of the condition about a level that does not exist.
const DANGLING: &str = "Dangling";
const EXEMPT: &str = "exempt";

/// A schema in force.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaSpec {
    /// Its name.
    pub name: String,
    /// Its uid; empty for one that is not stored.
    pub uid: String,
    /// Its rules, and its level.
    pub spec: FlowSchemaSpec,
}

/// A level in force.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelSpec {
    /// Its name.
    pub name: String,
    /// Its uid; empty for one that is not stored.
    pub uid: String,
    /// Whether its requests have no limit.
    pub is_exempt: bool,
    /// Its seats.
    pub limits: Limits,
    /// `None` if requests beyond the limit are rejected at once.
    pub queuing: Option<Queuing>,
    /// The most seats that one request takes; `None` for no other than those of its kind of work.
    pub max_seats: Option<usize>,
}

/// The schemas by precedence, and the levels by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// By precedence.
    pub schemas: Vec<SchemaSpec>,
    /// By name.
    pub levels: BTreeMap<String, LevelSpec>,
}

impl Configuration {
    /// Returns the configuration of a server with `total` seats. A schema whose level does not exist has no effect, nor
    /// has a level whose spec contradicts itself. `mandatory` objects are in force if those that are stored are not.
    pub fn new(
        total: usize,
        stored: (Vec<PriorityLevelConfiguration>, Vec<FlowSchema>),
        mandatory: (Vec<PriorityLevelConfiguration>, Vec<FlowSchema>),
    ) -> Self {
        let (mut levels, mut schemas) = stored;
        levels.retain(is_sound);
        add(&mut levels, mandatory.0, |level| &level.metadata.name);
        let levels = limited(total, &levels);
        let has_level = |schema: &FlowSchema| {
            levels.contains_key(&schema.spec.priority_level_configuration.name)
        };
        schemas.retain(has_level);
        add(&mut schemas, mandatory.1, |schema| &schema.metadata.name);
        schemas.sort_by(|a, b| {
            let key = |schema: &FlowSchema| schema.spec.matching_precedence;
            (key(a), &a.metadata.name).cmp(&(key(b), &b.metadata.name))
        });
        let schemas = schemas.into_iter().map(|schema| SchemaSpec {
            name: schema.metadata.name,
            uid: schema.metadata.uid,
            spec: schema.spec,
        });
        Self {
            schemas: schemas.collect(),
            levels,
        }
    }
}

/// Adds those whose names are missing.
fn add<T>(to: &mut Vec<T>, others: Vec<T>, name: fn(&T) -> &String) {
    for other in others {
        if !to.iter().any(|one| name(one) == name(&other)) {
            to.push(other);
        }
    }
}

/// Returns whether the parts of a level agree with its type, as validation demands.
fn is_sound(level: &PriorityLevelConfiguration) -> bool {
    let spec = &level.spec;
    let is_exempt = spec.r#type == "Exempt";
    let limited = spec.limited.as_ref().map(|limited| &limited.limit_response);
    is_exempt == (level.metadata.name == EXEMPT)
        && is_exempt == limited.is_none()
        && limited.is_none_or(|to| (to.r#type == "Queue") == to.queuing.is_some())
}

fn limited(total: usize, levels: &[PriorityLevelConfiguration]) -> BTreeMap<String, LevelSpec> {
    let sum = levels
        .iter()
        .map(|level| i64::from(shares(&level.spec).0))
        .sum();
    let limited = levels.iter().map(|level| {
        let (own, lendable, borrowing) = shares(&level.spec);
        let limits = Limits::of(total, own, sum, lendable, borrowing);
        let limited = level.spec.limited.as_ref();
        let queuing = limited.and_then(|limited| limited.limit_response.queuing.as_ref());
        let queuing = queuing.map(|of| Queuing {
            queues: positive(of.queues),
            hand: positive(of.hand_size),
            length: positive(of.queue_length_limit) as usize,
        });
        let spec = LevelSpec {
            name: level.metadata.name.clone(),
            uid: level.metadata.uid.clone(),
            is_exempt: limited.is_none(),
            limits,
            queuing,
            max_seats: queuing.map(|of| max_seats(limits.nominal, of.hand as usize)),
        };
        (spec.name.clone(), spec)
    });
    limited.collect()
}

fn positive(value: i32) -> u32 {
    u32::try_from(value).unwrap_or_default().max(1)
}

/// Returns the shares of a level, and what it may lend and borrow in percent.
fn shares(spec: &PriorityLevelConfigurationSpec) -> (i32, Option<i32>, Option<i32>) {
    match (&spec.limited, &spec.exempt) {
        (Some(limited), _) => (
            limited.nominal_concurrency_shares.unwrap_or_default(),
            limited.lendable_percent,
            limited.borrowing_limit_percent,
        ),
        (None, Some(exempt)) => (
            exempt.nominal_concurrency_shares.unwrap_or_default(),
            exempt.lendable_percent,
            None,
        ),
        (None, None) => (0, None, None),
    }
}

/// Returns the condition about the level of a schema, without its time, if it is not what the schema says already.
pub fn dangling(
    schema: &FlowSchema,
    exists: impl FnOnce(&str) -> bool,
) -> Option<FlowSchemaCondition> {
    let level = schema.spec.priority_level_configuration.name.as_str();
    let about =
        format!("This FlowSchema references the PriorityLevelConfiguration object named {level:?}");
    let (status, reason, message) = match exists(level) {
        true => ("False", "Found", format!("{about} and it exists")),
        false => (
            "True",
            "NotFound",
            format!("{about} but there is no such object"),
        ),
    };
    let mut conditions = schema.status.conditions.iter();
    let current = conditions.find(|condition| condition.r#type == DANGLING);
    let is_same = current.is_some_and(|current| {
        (current.status.as_str(), current.reason.as_str()) == (status, reason)
            && current.message == message
    });
    (!is_same).then(|| FlowSchemaCondition {
        r#type: DANGLING.into(),
        status: status.into(),
        reason: reason.into(),
        message,
        ..FlowSchemaCondition::default()
    })
}

#[cfg(test)]
mod tests {
    use setpoint_kinds::flowcontrol;

    use super::*;

    fn of_cluster() -> (Vec<PriorityLevelConfiguration>, Vec<FlowSchema>) {
        (
            flowcontrol::levels().collect(),
            flowcontrol::schemas().collect(),
        )
    }

    fn nominal(configuration: &Configuration, level: &str) -> usize {
        configuration.levels[level].limits.nominal
    }

    /// The figures of a kube-apiserver with its default of 600 seats.
    #[test]
    fn the_levels_of_a_cluster_share_its_seats() {
        let configuration = Configuration::new(600, of_cluster(), of_cluster());
        for (level, seats) in [
            ("exempt", 0),
            ("catch-all", 13),
            ("system", 74),
            ("node-high", 98),
            ("leader-election", 25),
            ("workload-high", 98),
            ("workload-low", 245),
            ("global-default", 49),
        ] {
            assert_eq!(nominal(&configuration, level), seats, "{level}");
        }
        assert_eq!(configuration.levels["workload-low"].max_seats, Some(37));
        assert!(configuration.levels["exempt"].is_exempt);
        let names = configuration
            .schemas
            .iter()
            .map(|schema| schema.name.as_str());
        let names: Vec<_> = names.collect();
        assert_eq!(names[..2], ["exempt", "probes"]);
        assert_eq!(names.last(), Some(&"catch-all"));
    }

    #[test]
    fn mandatory_objects_are_in_force_without_being_stored() {
        let empty = || (Vec::new(), Vec::new());
        let configuration = Configuration::new(600, empty(), of_cluster());
        assert_eq!(nominal(&configuration, "workload-low"), 245);
        let (_, schemas) = of_cluster();
        let (mut levels, _) = of_cluster();
        levels.retain(|level| ["exempt", "catch-all"].contains(&level.metadata.name.as_str()));
        let configuration =
            Configuration::new(600, (levels.clone(), schemas), (levels, Vec::new()));
        let names = configuration
            .schemas
            .iter()
            .map(|schema| schema.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["exempt", "probes", "catch-all"]);
        assert_eq!(nominal(&configuration, "catch-all"), 600);
    }

    #[test]
    fn a_level_that_contradicts_itself_is_ignored() {
        let (mut levels, schemas) = of_cluster();
        for level in &mut levels {
            if level.metadata.name == "workload-low" {
                level.spec.limited.as_mut().unwrap().limit_response.queuing = None;
            }
        }
        let configuration = Configuration::new(600, (levels, schemas), (Vec::new(), Vec::new()));
        assert!(!configuration.levels.contains_key("workload-low"));
        let mut names = configuration.schemas.iter();
        assert!(names.all(|schema| schema.name != "service-accounts"));
    }

    #[test]
    fn the_condition_says_whether_the_level_exists() {
        let mut schema = flowcontrol::schemas().next().unwrap();
        let found = dangling(&schema, |level| level == "exempt").unwrap();
        assert_eq!(
            (found.status.as_str(), found.reason.as_str()),
            ("False", "Found")
        );
        assert_eq!(
            found.message,
            r#"This FlowSchema references the PriorityLevelConfiguration object named "exempt" and it exists"#
        );
        schema.status.conditions.push(found);
        assert_eq!(dangling(&schema, |_| true), None);
        let missing = dangling(&schema, |_| false).unwrap();
        assert_eq!(
            (missing.status.as_str(), missing.reason.as_str()),
            ("True", "NotFound")
        );
    }
}
