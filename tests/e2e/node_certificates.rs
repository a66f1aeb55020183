//! Certificates of nodes by CertificateSigningRequests: an agent that nobody has given a certificate joins by a
//! bootstrap token, serves by a certificate for its own address, and is out once its Node is deleted.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Command;

use setpoint_ctl::launcher::program;
use setpoint_tests::{Cluster, Kubectl, Process, Size, WallClock, eventually, fast_election};

use crate::node_pressure::{has_phase, until};
use crate::workloads::{MANAGER, create};

/// An agent with a folder of its own.
struct Agent {
    process: Process,
    folder: PathBuf,
}

impl Agent {
    /// Starts an agent of a node that has the CA of the cluster and a token.
    fn start(cluster: &Cluster, node: &str, token: &str) -> Self {
        Self::with_environment(cluster, node, token, &[])
    }

    /// Like [`Self::start`], with these variables.
    fn with_environment(
        cluster: &Cluster,
        node: &str,
        token: &str,
        variables: &[(&str, PathBuf)],
    ) -> Self {
        let folder = cluster.directory().join(format!("joined-{node}-{token}"));
        let certificates = folder.join("certificates");
        fs::create_dir_all(&certificates).expect("it is writable");
        let ca = cluster.pki().files("gateway-0").ca_file;
        fs::copy(ca, certificates.join("ca.crt")).expect("it is writable");
        let token_file = folder.join("token");
        fs::write(&token_file, format!("{token}\n")).expect("it is writable");
        let log = File::create(folder.join("log")).expect("it is writable");
        let both = log.try_clone().expect("it is open");
        let mut command = Command::new(program("node-agent").expect("build the workspace first"));
        command
            .args(["--runtime", "process", "--instance", node, "--state-dir"])
            .arg(folder.join("state"))
            .env("SETPOINT__BOOTSTRAP__DIRECTORY", &certificates)
            .env("SETPOINT__BOOTSTRAP__TOKEN_FILE", &token_file)
            .env("SETPOINT__NODE_NAME", node)
            .envs(variables.iter().cloned())
            .env(
                "SETPOINT__GATEWAY__ADDRESS",
                format!("https://{}", cluster.gateway_url().place()),
            )
            .stdout(both)
            .stderr(log);
        let process = Process::start(command);
        Self { process, folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join("certificates").join(name)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Waits until the agent has ended. Returns its log.
    fn ended(&mut self) -> String {
        eventually("the agent has ended", || {
            let runs = self.process.is_running();
            (!runs).then_some(()).ok_or_else(|| self.log())
        });
        self.log()
    }
}

/// Starts a cluster without nodes, whose requests for certificates are decided on.
fn cluster() -> Cluster {
    let mut cluster = Cluster::start(Size {
        process_nodes: 0,
        simulated_nodes: 0,
        ..Size::default()
    });
    let controllers = ["--controllers", "certificatesigningrequest"].map(str::to_owned);
    cluster.service(MANAGER, 0, &[fast_election(), controllers.into()].concat());
    cluster
}

/// Creates a token as `setpoint token create` does.
fn create_token(kubectl: &Kubectl, id: &str, node: &str) -> String {
    let expiry = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(15);
    create(
        kubectl,
        &format!(
            "apiVersion: v1
kind: Secret
type: bootstrap.kubernetes.io/token
metadata:
  name: bootstrap-token-{id}
  namespace: kube-system
  annotations: {{setpoint.dev/node: {node}}}
stringData:
  token-id: {id}
  token-secret: 0123456789abcdef
  usage-bootstrap-authentication: 'true'
  usage-bootstrap-signing: 'true'
  auth-extra-groups: system:bootstrappers:setpoint:agent
  expiration: '{expiry}'
"
        ),
    );
    format!("{id}.0123456789abcdef")
}

fn until_ready(kubectl: &Kubectl, agent: &Agent, node: &str) {
    eventually(&format!("{node} is Ready"), || {
        let row = kubectl.run(&format!("get node {node} --no-headers")).stdout;
        let ready = row.split_whitespace().nth(1) == Some("Ready");
        ready.then_some(()).ok_or_else(|| agent.log())
    });
}

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  nodeName: joined
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: none
    command: [sh, -c, 'echo hello; exec sleep 1000']
";

/// Returns what a node is told that asks for itself.
fn as_node(kubectl: &Kubectl) -> String {
    let output = kubectl.run("--user node get node joined -o name");
    output.stdout + &output.stderr
}

/// Checks V20: a serving certificate has no names but those of its node, and a token brings in one node, once.
#[test]
fn an_agent_joins_by_a_token_and_is_out_when_its_node_is_deleted() {
    let cluster = cluster();
    let kubectl = cluster.kubectl();
    let token = create_token(&kubectl, "abcdef", "joined");
    let mut agent = Agent::start(&cluster, "joined", &token);
    until_ready(&kubectl, &agent, "joined");
    assert!(!agent.folder.join("token").exists());

    // The gateway reaches the agent by its serving certificate.
    create(&kubectl, POD);
    until(&kubectl, "web", has_phase("Running"));
    let logs = eventually("logs are served", || {
        let output = kubectl.run("logs web");
        output.success.then_some(output.stdout).ok_or(output.stderr)
    });
    assert_eq!(logs, "hello\n");
    assert_eq!(kubectl.ok("exec web -- echo again"), "again\n");
    let requests = kubectl.ok("get csr --no-headers");
    for signer in ["kube-apiserver-client-kubelet", "kubelet-serving"] {
        let of_signer = requests.lines().find(|row| row.contains(signer));
        let of_signer = of_signer.expect("there is one");
        assert!(of_signer.contains("Approved,Issued"), "{of_signer}");
    }
    let [certificate, key] = ["client.crt", "client.key"].map(|name| agent.file(name));
    kubectl.ok(&format!(
        "config set-credentials node --embed-certs --client-certificate {} --client-key {}",
        certificate.display(),
        key.display()
    ));
    assert_eq!(as_node(&kubectl), "node/joined\n");

    // The token is gone, and the one of another node brings in that one only.
    eventually("the token is removed", || {
        let found = kubectl.run("get secret bootstrap-token-abcdef -n kube-system");
        (!found.success).then_some(()).ok_or(found.stdout)
    });
    let late = Agent::start(&cluster, "late", &token).ended();
    assert!(late.contains("the bootstrap token is not valid"), "{late}");
    let other = create_token(&kubectl, "bcdefg", "other");
    let wrong = Agent::start(&cluster, "wrong", &other).ended();
    assert!(wrong.contains("for the node \\\"other\\\""), "{wrong}");
    let nodes = kubectl.ok("get nodes -o name");
    assert_eq!(nodes, "node/joined\n");

    // An agent that is started again has its certificates.
    agent.process.restart();
    until_ready(&kubectl, &agent, "joined");
    kubectl.ok("delete pod web");
    eventually("the Pod is gone", || {
        let found = kubectl.run("get pod web");
        (!found.success).then_some(()).ok_or(found.stdout)
    });

    kubectl.ok("delete node joined");
    eventually("the node is unauthorized", || {
        let told = as_node(&kubectl);
        told.contains("Unauthorized").then_some(()).ok_or(told)
    });
    let log = agent.ended();
    assert!(log.contains("its Node was deleted"), "{log}");
    assert_eq!(kubectl.ok("get nodes -o name"), "");
}

/// After three quarters of a day, by the clock of the node, both certificates are others, and gateways know them.
#[test]
fn an_agent_that_has_joined_renews_its_certificates() {
    let Some(clock) = WallClock::new() else {
        return;
    };
    let cluster = cluster();
    let kubectl = cluster.kubectl();
    let token = create_token(&kubectl, "abcdef", "joined");
    let mut agent = Agent::with_environment(&cluster, "joined", &token, &clock.environment());
    until_ready(&kubectl, &agent, "joined");
    WallClock::remove_leftovers(agent.process.pid());
    let page = "get --raw /api/v1/nodes/joined/proxy/stats/summary";
    let served = || {
        eventually("the agent serves gateways", || {
            let output = kubectl.run(page);
            output.success.then_some(()).ok_or(output.stderr)
        });
    };
    served();
    let read = |name: &str| fs::read(agent.file(name)).expect("it was written");
    let first = ["client.crt", "serving.crt"].map(|name| (name, read(name)));
    clock.set(18 * 3600);
    for (name, before) in &first {
        eventually(&format!("{name} is another one"), || {
            let is_new = read(name) != *before;
            is_new.then_some(()).ok_or_else(|| agent.log())
        });
    }
    served();
    clock.set(0);
    until_ready(&kubectl, &agent, "joined");
    assert!(agent.process.is_running(), "{}", agent.log());
}
