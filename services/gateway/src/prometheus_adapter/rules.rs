//! The rules: which query a metric has. They are settings.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Uri;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_host::DurationText;
use setpoint_proto::Resource as _;
use setpoint_proto::core::Pod;

use super::promql::{Template, is_label};

/// The settings of metrics.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// URL of the Prometheus server that custom.metrics.k8s.io and external.metrics.k8s.io are read from, for example
    /// `http://127.0.0.1:9090`; empty for none.
    pub prometheus: String,
    /// Timeout of a query of Prometheus.
    #[serde(with = "DurationText")]
    pub timeout: Duration,
    /// Metrics of objects: a list of tables in the settings file.
    ///
    /// Each has the label with the name of the object for each kind, and that with the namespace; those below are the
    /// defaults. In a query, `<<matchers>>` are those of a request (the namespace, the objects, the labels that are
    /// selected), and
    /// `<<by>>` is the label with the names of the objects.
    ///
    /// ```toml
    /// [[metrics.custom]]
    /// name = "http_requests_per_second"
    /// query = "sum by (<<by>>) (rate(http_requests_total{<<matchers>>}[2m]))"
    /// resources = { pods = "pod" }
    /// namespace = "namespace"
    /// ```
    pub custom: Vec<CustomRule>,
    /// Metrics of no object: a list of tables in the settings file. Without a label for the namespace, each namespace
    /// reads all series.
    ///
    /// ```toml
    /// [[metrics.external]]
    /// name = "queue_length"
    /// query = "queue_length{<<matchers>>}"
    /// namespace = "namespace"
    /// ```
    pub external: Vec<ExternalRule>,
}

/// A metric of objects.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CustomRule {
    /// The name of the metric.
    pub name: String,
    /// The query: PromQL with `<<matchers>>` for the matchers of a series, and `<<by>>` for the label with the name of
    /// the object.
    pub query: String,
    /// The label with the name of the object, by the plural of its kind with the group.
    #[serde(default = "pod_label")]
    pub resources: BTreeMap<String, String>,
    /// The label with the namespace of the object.
    #[serde(default = "namespace")]
    pub namespace: String,
}

/// A metric of no object.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExternalRule {
    /// The name of the metric.
    pub name: String,
    /// The query: PromQL with `<<matchers>>` for the matchers of a series. Each series of its result is a value.
    pub query: String,
    /// The label with the namespace that may read a series; empty if each may read all.
    #[serde(default = "namespace")]
    pub namespace: String,
}

fn pod_label() -> BTreeMap<String, String> {
    [(Pod::RESOURCE.to_owned(), "pod".to_owned())].into()
}

fn namespace() -> String {
    "namespace".to_owned()
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prometheus: String::new(),
            // Clients wait for 10 s.
            timeout: Duration::from_secs(5),
            custom: Vec::new(),
            external: Vec::new(),
        }
    }
}

impl Settings {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first invalid value.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let rules = Rules::new(self)?;
        let has_rules = !rules.custom.is_empty() || !rules.external.is_empty();
        if self.timeout.is_zero() {
            return Err("metrics.timeout must be greater than 0".to_owned());
        }
        match self.url()? {
            None if has_rules => {
                Err("metrics.prometheus must be set, since there are rules".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns the URL of the Prometheus server, without a slash at its end.
    pub(super) fn url(&self) -> Result<Option<String>, String> {
        let text = self.prometheus.trim_end_matches('/');
        if text.is_empty() {
            return Ok(None);
        }
        let is_url = text.parse::<Uri>().is_ok_and(|uri| {
            let has_scheme = matches!(uri.scheme_str(), Some("http" | "https"));
            let has_host = uri.host().is_some_and(|host| !host.is_empty());
            let has_user = uri
                .authority()
                .is_some_and(|all| all.as_str().contains('@'));
            has_scheme && has_host && !has_user && uri.query().is_none()
        });
        match is_url {
            true => Ok(Some(text.to_owned())),
            false => Err(format!(
                "metrics.prometheus {text:?} is not a URL such as http://127.0.0.1:9090, without a user and a query"
            )),
        }
    }
}

/// The rules with their queries parsed, by the names of the metrics.
#[derive(Debug)]
pub(super) struct Rules {
    custom: BTreeMap<String, Custom>,
    external: BTreeMap<String, External>,
}

/// A parsed [`CustomRule`].
#[derive(Debug)]
pub(super) struct Custom {
    pub(super) query: Template,
    pub(super) namespace: String,
    resources: BTreeMap<String, String>,
}

/// A parsed [`ExternalRule`].
#[derive(Debug)]
pub(super) struct External {
    pub(super) query: Template,
    /// Empty if each namespace may read all series.
    pub(super) namespace: String,
}

impl Rules {
    /// Parses the rules.
    ///
    /// # Errors
    /// The first invalid rule.
    pub(super) fn new(settings: &Settings) -> Result<Self, String> {
        let mut rules = Self {
            custom: BTreeMap::new(),
            external: BTreeMap::new(),
        };
        for rule in &settings.custom {
            let name = &rule.name;
            let parsed = Custom::parse(rule).map_err(|why| invalid("custom", name, &why))?;
            if rules.custom.insert(name.clone(), parsed).is_some() {
                return Err(invalid("custom", name, "the name is not unique"));
            }
        }
        for rule in &settings.external {
            let name = &rule.name;
            let parsed = External::parse(rule).map_err(|why| invalid("external", name, &why))?;
            if rules.external.insert(name.clone(), parsed).is_some() {
                return Err(invalid("external", name, "the name is not unique"));
            }
        }
        Ok(rules)
    }

    /// Returns the rule of a metric of a resource, and the label with the names of its objects.
    pub(super) fn custom(&self, metric: &str, resource: &str) -> Option<(&Custom, &str)> {
        let rule = self.custom.get(metric)?;
        Some((rule, rule.resources.get(resource)?))
    }

    /// Returns the rule of an external metric.
    pub(super) fn external(&self, metric: &str) -> Option<&External> {
        self.external.get(metric)
    }

    /// Returns the resources with metrics, each with the name of a metric.
    pub(super) fn of_objects(&self) -> impl Iterator<Item = (&str, &str)> {
        self.custom.iter().flat_map(|(name, rule)| {
            let resources = rule.resources.keys();
            resources.map(|resource| (resource.as_str(), name.as_str()))
        })
    }

    /// Returns the names of the external metrics.
    pub(super) fn of_no_object(&self) -> impl Iterator<Item = &str> {
        self.external.keys().map(String::as_str)
    }
}

impl Custom {
    fn parse(rule: &CustomRule) -> Result<Self, String> {
        check_name(&rule.name)?;
        if rule.resources.is_empty() {
            return Err("resources must not be empty".to_owned());
        }
        let labels = rule.resources.values().chain([&rule.namespace]);
        labels.map(String::as_str).try_for_each(check_label)?;
        Ok(Self {
            query: Template::parse(&rule.query, true)?,
            namespace: rule.namespace.clone(),
            resources: rule.resources.clone(),
        })
    }
}

impl External {
    fn parse(rule: &ExternalRule) -> Result<Self, String> {
        check_name(&rule.name)?;
        if !rule.namespace.is_empty() {
            check_label(&rule.namespace)?;
        }
        Ok(Self {
            query: Template::parse(&rule.query, false)?,
            namespace: rule.namespace.clone(),
        })
    }
}

/// Checks that a name can be a segment of a path, as upstream requires.
fn check_name(name: &str) -> Result<(), String> {
    match name.is_empty() || [".", ".."].contains(&name) || name.contains(['/', '%']) {
        true => Err("the name must be a segment of a path".to_owned()),
        false => Ok(()),
    }
}

fn check_label(label: &str) -> Result<(), String> {
    match is_label(label) {
        true => Ok(()),
        false => Err(format!("{label:?} is not a name of a label in Prometheus")),
    }
}

fn invalid(list: &str, name: &str, why: &str) -> String {
    format!("metrics.{list}: {name:?}: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, query: &str) -> CustomRule {
        CustomRule {
            name: name.to_owned(),
            query: query.to_owned(),
            resources: pod_label(),
            namespace: namespace(),
        }
    }

    fn with(custom: Vec<CustomRule>) -> Settings {
        Settings {
            prometheus: "http://localhost:9090/".to_owned(),
            custom,
            ..Settings::default()
        }
    }

    #[test]
    fn a_rule_has_upstreams_labels_by_default() {
        let toml = serde_json::json!({ "name": "load", "query": "load{<<matchers>>}" });
        let parsed: CustomRule = serde_json::from_value(toml.clone()).unwrap();
        let settings = with(vec![parsed]);
        assert_eq!(settings.validate(), Ok(()));
        assert_eq!(settings.url(), Ok(Some("http://localhost:9090".to_owned())));
        let rules = Rules::new(&settings).unwrap();
        let (custom, label) = rules.custom("load", "pods").unwrap();
        assert_eq!((label, custom.namespace.as_str()), ("pod", "namespace"));
        assert!(rules.custom("load", "services").is_none());
        assert_eq!(rules.of_objects().collect::<Vec<_>>(), [("pods", "load")]);
        let external: ExternalRule = serde_json::from_value(toml).unwrap();
        assert_eq!(external.namespace, "namespace");
    }

    #[test]
    fn rules_that_cannot_work_are_refused_with_the_reason() {
        let query = "load{<<matchers>>}";
        let mut labels = rule("load", query);
        labels.resources.insert("nodes".into(), "node-name".into());
        let cases = [
            (vec![rule("a/b", query)], "segment of a path"),
            (vec![rule("load", "load")], "<<matchers>>"),
            (vec![rule("load", query), rule("load", query)], "not unique"),
            (vec![labels], "\"node-name\" is not a name of a label"),
        ];
        for (custom, why) in cases {
            let refused = with(custom).validate().unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        let mut settings = with(vec![rule("load", query)]);
        for url in [
            "",
            "localhost:9090",
            "ftp://a",
            "http://",
            "http://me:secret@a",
            "http://a/?b",
        ] {
            settings.prometheus = url.to_owned();
            assert!(settings.validate().is_err(), "{url}");
        }
        assert_eq!(Settings::default().validate(), Ok(()));
    }
}
