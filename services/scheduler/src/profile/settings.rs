//! The settings of profiles, in upstream's form: what differs from the default plugins and arguments.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::args::PluginConfig;
use super::{DEFAULT_SCHEDULER, Profile, Profiles};
use crate::plugin::{Plugin, PluginSet};

/// The settings of a profile.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// The `spec.schedulerName` of its Pods.
    pub scheduler_name: String,
    plugins: Plugins,
    plugin_config: Vec<PluginConfig>,
}

/// The plugins that are enabled or disabled, at all extension points (`multiPoint`) or at one.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Plugins {
    multi_point: Changes,
    filter: Changes,
    post_filter: Changes,
    score: Changes,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
struct Changes {
    enabled: Vec<Enabled>,
    disabled: Vec<Disabled>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Enabled {
    name: String,
    #[serde(default)]
    weight: i32,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Disabled {
    name: String,
}

/// An extension point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    Filter,
    PostFilter,
    Score,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            scheduler_name: DEFAULT_SCHEDULER.to_owned(),
            plugins: Plugins::default(),
            plugin_config: Vec::new(),
        }
    }
}

/// Returns the profiles of the settings.
pub fn parse(settings: &[Settings]) -> Result<Profiles, String> {
    if settings.is_empty() {
        return Err("profiles: Required value".to_owned());
    }
    let mut names = BTreeSet::new();
    let profiles = settings.iter().enumerate().map(|(n, settings)| {
        let (path, name) = (format!("profiles[{n}]"), &settings.scheduler_name);
        match name.as_str() {
            "" => Err(format!("{path}.schedulerName: Required value")),
            name if !names.insert(name) => {
                Err(format!("{path}.schedulerName: Duplicate value: {name:?}"))
            }
            _ => settings.parse(&path),
        }
    });
    profiles.collect()
}

impl Settings {
    fn parse(&self, path: &str) -> Result<Profile, String> {
        let mut profile = Profile {
            name: self.scheduler_name.clone(),
            ..Profile::default()
        };
        let plugins = &self.plugins;
        let points = [
            ("multiPoint", &plugins.multi_point, &Point::ALL[..]),
            ("filter", &plugins.filter, &[Point::Filter][..]),
            ("postFilter", &plugins.post_filter, &[Point::PostFilter][..]),
            ("score", &plugins.score, &[Point::Score][..]),
        ];
        for (name, changes, points) in points {
            changes.apply(&mut profile, points, &format!("{path}.plugins.{name}"))?;
        }
        let mut configured = BTreeSet::new();
        for (n, config) in self.plugin_config.iter().enumerate() {
            let path = format!("{path}.pluginConfig[{n}]");
            if !configured.insert(config.name()) {
                return Err(format!("{path}: Duplicate value: {:?}", config.name()));
            }
            config.apply(&mut profile, &format!("{path}.args"))?;
        }
        Ok(profile)
    }
}

impl Changes {
    /// Disables plugins, or all with `*`, and then enables others, at some extension points.
    fn apply(&self, profile: &mut Profile, points: &[Point], path: &str) -> Result<(), String> {
        for (n, disabled) in self.disabled.iter().enumerate() {
            let disabled = match disabled.name.as_str() {
                "*" => PluginSet::ALL,
                name => {
                    let path = format!("{path}.disabled[{n}]");
                    [known(name, points, &path)?].into_iter().collect()
                }
            };
            points
                .iter()
                .for_each(|point| point.disable(profile, disabled));
        }
        let mut seen = PluginSet::default();
        for (n, enabled) in self.enabled.iter().enumerate() {
            let path = format!("{path}.enabled[{n}]");
            let plugin = known(&enabled.name, points, &path)?;
            if seen.contains(plugin) {
                return Err(format!("{path}: Duplicate value: {:?}", enabled.name));
            }
            seen.add(plugin);
            let weight = match enabled.weight {
                weight if weight < 0 => {
                    return Err(format!(
                        "{path}.weight: Invalid value: {weight}: must not be negative"
                    ));
                }
                weight => i64::from(weight.max(1)),
            };
            points
                .iter()
                .filter(|point| point.is_of(plugin))
                .for_each(|point| point.enable(profile, plugin, weight));
        }
        Ok(())
    }
}

/// Returns the plugin of a name, which must extend one of the points.
fn known(name: &str, points: &[Point], path: &str) -> Result<Plugin, String> {
    let plugin = Plugin::named(name)
        .ok_or_else(|| format!("{path}: Invalid value: {name:?}: plugin does not exist"))?;
    match points {
        [point] if !point.is_of(plugin) => Err(format!(
            "{path}: Invalid value: {name:?}: plugin does not extend {point:?} plugin"
        )),
        _ => Ok(plugin),
    }
}

impl Point {
    const ALL: [Self; 3] = [Self::Filter, Self::PostFilter, Self::Score];

    const fn is_of(self, plugin: Plugin) -> bool {
        match self {
            Self::Filter => plugin.filters(),
            Self::PostFilter => matches!(plugin, Plugin::DefaultPreemption),
            Self::Score => plugin.default_weight().is_some(),
        }
    }

    fn disable(self, profile: &mut Profile, plugins: PluginSet) {
        match self {
            Self::Filter => {
                let disabled = Plugin::ALL.into_iter();
                disabled
                    .filter(|plugin| plugins.contains(*plugin))
                    .for_each(|plugin| profile.filters.remove(plugin));
            }
            Self::PostFilter => {
                profile.preempts &= !plugins.contains(Plugin::DefaultPreemption);
            }
            Self::Score => profile
                .weights
                .retain(|plugin, _| !plugins.contains(*plugin)),
        }
    }

    fn enable(self, profile: &mut Profile, plugin: Plugin, weight: i64) {
        match self {
            Self::Filter => profile.filters.add(plugin),
            Self::PostFilter => profile.preempts = true,
            Self::Score => _ = profile.weights.insert(plugin, weight),
        }
    }
}
