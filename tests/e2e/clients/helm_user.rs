//! helm, used by somebody who may administer one namespace: a chart that brings its own roles.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use setpoint_ctl::launcher::{Identity, Kubeconfig};
use setpoint_tests::{Cluster, Kubectl, Output, Size, eventually};
use tempfile::TempDir;

use super::client;

const NAMESPACE: &str = "shop";
/// The chart: an account, a role with a binding, a ConfigMap, and a Deployment whose Pods are that account.
const CHART: [(&str, &str); 3] = [
    (
        "Chart.yaml",
        "apiVersion: v2\nname: robot\nversion: 1.0.0\n",
    ),
    (
        "values.yaml",
        "colour: red\nreplicas: 1\nverbs: [get]\nresources: [configmaps]\n",
    ),
    ("templates/all.yaml", include_str!("chart.yaml")),
];

/// The user jane, who is an administrator of a namespace.
struct Jane {
    helm: PathBuf,
    /// Her kubeconfig, the chart, and the files of helm.
    home: TempDir,
    kubectl: Kubectl,
}

impl Jane {
    fn start(helm: PathBuf, cluster: &Cluster) -> Self {
        let home = tempfile::tempdir().expect("a temporary folder");
        let file = home.path().join("kubeconfig");
        let issued = cluster.pki().issue_user(&Identity::user("jane", &[]));
        let config = Kubeconfig::new(
            cluster.gateway_url_at(0).to_string(),
            issued.expect("the CA is there"),
        );
        config.write(&file).expect("it is writable");
        for (name, text) in CHART {
            let file = home.path().join("robot").join(name);
            fs::create_dir_all(file.parent().expect("it has a folder")).expect("it is ours");
            fs::write(file, text).expect("it is writable");
        }
        let kubectl = Kubectl::new(home.path().to_owned());
        Self {
            helm,
            home,
            kubectl,
        }
    }

    fn run(&self, arguments: &str) -> Output {
        let mut command = Command::new(&self.helm);
        let folder = self.home.path();
        let homes = ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"];
        command.envs(homes.map(|home| (home, folder)));
        command.env("KUBECONFIG", folder.join("kubeconfig"));
        let arguments = arguments.split_whitespace();
        let command = command.args(["--namespace", NAMESPACE]).args(arguments);
        let output = command.current_dir(folder).output();
        Output::from(output.expect("the program is installed"))
    }

    fn helm(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(
            output.success,
            "{arguments}: {}{}",
            output.stdout, output.stderr
        );
        output.stdout
    }

    /// Runs a command that must fail, and returns its standard error.
    fn refused(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        assert!(!output.success, "{arguments}: {}", output.stdout);
        output.stderr
    }

    fn get(&self, arguments: &str) -> String {
        self.kubectl.ok(&format!("-n {NAMESPACE} get {arguments}"))
    }

    fn colour(&self) -> String {
        self.get("configmap robot -o jsonpath={.data.colour}")
    }
}

/// Makes jane an administrator of the namespace, and waits until she is.
fn admit(cluster: &Cluster, jane: &Jane) {
    let kubectl = cluster.kubectl();
    kubectl.ok(&format!("create namespace {NAMESPACE}"));
    kubectl.ok(&format!(
        "create rolebinding jane -n {NAMESPACE} --clusterrole=admin --user=jane"
    ));
    eventually("jane may create roles", || {
        let asked = format!("auth can-i create roles -n {NAMESPACE}");
        let output = jane.kubectl.run(&asked);
        output.success.then_some(()).ok_or(output.stdout)
    });
}

#[test]
fn an_ordinary_user_installs_upgrades_rolls_back_and_uninstalls_a_chart_with_roles() {
    let Some(helm) = client("helm") else {
        return;
    };
    let cluster = Cluster::start(Size {
        process_nodes: 0,
        ..Size::default()
    });
    let jane = Jane::start(helm, &cluster);
    let elsewhere = jane.refused("install robot ./robot");
    let nothing = r#"serviceaccounts "robot" is forbidden: User "jane" cannot get resource "serviceaccounts" in API group "" in the namespace "shop""#;
    assert!(elsewhere.contains(nothing), "{elsewhere}");
    admit(&cluster, &jane);

    let installed = jane.helm("install robot ./robot --wait --timeout 60s");
    assert!(installed.contains("STATUS: deployed"), "{installed}");
    let bound = "rolebinding robot -o jsonpath={.roleRef.name}/{.subjects[0].name}";
    assert_eq!(jane.get(bound), "robot/robot");
    let ready = "deployment robot -o jsonpath={.status.readyReplicas}";
    assert_eq!(jane.get(ready), "1");
    // What the account may do is what the chart says.
    let account = format!("--as=system:serviceaccount:{NAMESPACE}:robot -n {NAMESPACE}");
    let may = |what: &str| {
        let asked = format!("auth can-i {what} {account}");
        cluster.kubectl().run(&asked).success
    };
    assert!(may("get configmaps") && !may("get secrets"));

    jane.helm("upgrade robot ./robot --set colour=blue,replicas=2 --wait --timeout 60s");
    assert_eq!(
        (jane.colour(), jane.get(ready)),
        ("blue".into(), "2".into())
    );
    jane.helm("upgrade robot ./robot --set verbs={get,list} --wait --timeout 60s");
    eventually("the account may list", || {
        let listed = may("list configmaps");
        listed.then_some(()).ok_or("not yet".to_owned())
    });
    jane.helm("rollback robot 1 --wait --timeout 60s");
    assert_eq!(jane.colour(), "red");
    eventually("the account may no longer list", || {
        let listed = may("list configmaps");
        (!listed).then_some(()).ok_or("it may".to_owned())
    });

    escalate(&jane);
    jane.helm("uninstall robot --wait --timeout 60s");
    let all = "deployments,configmaps,serviceaccounts,roles,rolebindings -l chart=robot -o name";
    assert_eq!(jane.get(all), "");
}

/// Tries to get more than jane has by the chart, with upstream's answers.
fn escalate(jane: &Jane) {
    for (verbs, resources, rule) in [
        (
            "get",
            "nodes",
            r#"{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}"#,
        ),
        (
            "get,deletecollection",
            "configmaps,nodes",
            r#"{APIGroups:[""], Resources:["nodes"], Verbs:["get" "deletecollection"]}"#,
        ),
    ] {
        let set = format!("verbs={{{verbs}}},resources={{{resources}}}");
        let refused = jane.refused(&format!("upgrade robot ./robot --set {set}"));
        let expected = format!(
            "roles.rbac.authorization.k8s.io \"robot\" is forbidden: user \"jane\" (groups=[\"system:authenticated\"]) \
             is attempting to grant RBAC permissions not currently held:\n{rule}"
        );
        assert!(refused.contains(&expected), "{refused}");
    }
    let refused = jane.refused("install other ./robot --set cluster=true");
    let expected = r#"clusterroles.rbac.authorization.k8s.io "other" is forbidden: User "jane" cannot get resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope"#;
    assert!(refused.contains(expected), "{refused}");
}
