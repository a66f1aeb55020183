//! Tests of the configuration of an administrator.

use serde_json::{Value, json};
use setpoint_pod_security::{Configuration, Mode};

const VERSION: &str = "pod-security.admission.config.k8s.io/v1";

fn read(fields: Value) -> Result<Configuration, String> {
    let mut document = json!({ "apiVersion": VERSION, "kind": "PodSecurityConfiguration" });
    let Value::Object(fields) = fields else {
        return Configuration::read(&fields);
    };
    document.as_object_mut().unwrap().extend(fields);
    Configuration::read(&document)
}

#[test]
fn a_configuration_has_defaults_and_exemptions() {
    assert_eq!(read(json!({})), Ok(Configuration::default()));
    let configuration = read(json!({
        "defaults": { "enforce": "baseline", "enforce-version": "v1.30", "warn": "restricted", "audit": "" },
        "exemptions": { "usernames": ["jane"], "namespaces": ["kube-system"], "runtimeClasses": ["vm"] },
    }));
    let configuration = configuration.unwrap();
    let texts = Mode::ALL.map(|mode| configuration.defaults.of(mode).to_string());
    assert_eq!(
        texts,
        ["baseline:v1.30", "privileged:latest", "restricted:latest"]
    );
    let exemptions = configuration.exemptions;
    assert!(exemptions.usernames.contains("jane"));
    assert!(exemptions.namespaces.contains("kube-system"));
    assert!(exemptions.runtime_classes.contains("vm"));
}

#[test]
fn what_is_wrong_is_refused_with_the_path_of_its_field() {
    let refused = |fields: Value| read(fields).unwrap_err();
    assert_eq!(
        refused(json!({ "defaults": { "enforce": "strict" } })),
        "defaults.enforce: Invalid value: \"strict\": must be one of privileged, baseline, restricted"
    );
    assert_eq!(
        refused(
            json!({ "defaults": { "audit-version": "1.2", "warn": 3, "enforced": "baseline" } })
        ),
        "[defaults.audit-version: Invalid value: \"1.2\": must be \"latest\" or \"v1.x\", \
         unknown field \"defaults.enforced\", defaults.warn: Invalid value: 3: must be a string]"
    );
    let namespaces = refused(json!({ "exemptions": { "namespaces": ["a", "B", "a"] } }));
    assert!(
        namespaces.starts_with("[exemptions.namespaces[1]: Invalid value: \"B\": "),
        "{namespaces}"
    );
    assert!(
        namespaces.ends_with(", exemptions.namespaces[2]: Duplicate value: \"a\"]"),
        "{namespaces}"
    );
    assert_eq!(
        refused(json!({ "exemptions": { "usernames": [""] } })),
        "exemptions.usernames[0]: Invalid value: \"\": username must not be empty"
    );
    let class = refused(json!({ "exemptions": { "runtimeClasses": ["-"], "users": [] } }));
    assert!(
        class.contains("exemptions.runtimeClasses[0]: ")
            && class.contains("unknown field \"exemptions.users\"")
    );
    assert_eq!(refused(json!({ "exempt": {} })), "unknown field \"exempt\"");
    assert_eq!(
        refused(json!({ "exemptions": [] })),
        "exemptions: Invalid value: []: must be an object"
    );
    for (name, value) in [("kind", "Pod"), ("apiVersion", "v1")] {
        let refused = refused(json!({ name: value }));
        assert!(refused.starts_with("no kind "), "{refused}");
    }
    assert_eq!(refused(json!([])), "expected PodSecurityConfiguration");
}
