//! Measures the cluster as a whole. Rates depend on the machine; ratios within one run, CPU and memory say more.

mod app;
mod cascade;
mod comparison;
mod definitions;
mod deployments;
mod dns;
mod encryption;
mod failover;
mod guard;
mod hostile;
mod http;
mod idle;
mod informer;
mod load;
mod nodes;
mod pairs;
mod process;
mod protection;
mod rbac;
mod report;
mod services;
mod start;
mod tracing;
mod watch;
mod writes;

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use comparison::Comparison;
use report::Report;

/// Measures Setpoint on this machine.
#[derive(Parser)]
#[command(version, bin_name = "tests/bench")]
struct Options {
    /// The parts to measure; all by default.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// File for the results as JSON.
    #[arg(long, default_value = "target/bench.json")]
    output: PathBuf,
    /// Seconds for each rate.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// Seconds for the measurement of the idle cluster, and of an agent with Pods.
    #[arg(long, default_value_t = 30.0)]
    idle: f64,
    /// The numbers of Pods that are started on containerd.
    #[arg(
        long,
        value_delimiter = ',',
        default_values_t = [1, 10, 100],
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pods: Vec<u16>,
    /// Directory of the cluster's programs, by default that of this program. Those of several builds are measured in
    /// turn and compared with the first.
    #[arg(long)]
    programs: Vec<PathBuf>,
    /// Number of measurements of each build if `--programs` is given.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
}

impl Options {
    /// Returns the arguments for a measurement of one build.
    fn arguments(&self) -> Vec<String> {
        let values = self.parts.iter().filter_map(Part::to_possible_value);
        let parts = values.map(|value| value.get_name().to_owned());
        let numbers = [("--seconds", self.seconds), ("--idle", self.idle)];
        let numbers = numbers.map(|(name, value)| format!("{name}={value}"));
        let pods = self.pods.iter().map(|count| format!("--pods={count}"));
        parts.chain(numbers).chain(pods).collect()
    }
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Part {
    /// Time until the gateway is ready.
    Start,
    /// Creates through the gateway compared with raw etcd.
    Writes,
    /// Creates, gets and lists in JSON over HTTP/2, compared with raw etcd.
    Http,
    /// Deliveries to 1, 16 and 256 watchers, and the memory of 10 000 idle ones.
    Watch,
    /// Time from the creation of a Deployment until N Pods run.
    Cascade,
    /// The cost of exporting every span.
    Tracing,
    /// Bytes per cached Pod.
    Informer,
    /// 500 CustomResourceDefinitions: time, memory, discovery and OpenAPI.
    Definitions,
    /// Decisions about requests, with few bindings and with many.
    Rbac,
    /// The cost of TLS and RBAC, also for the start of a cluster.
    Guard,
    /// The cost of audit of metadata, of priority and fairness, and of encryption with AES-GCM, together and alone.
    Protection,
    /// Creates of a user beside a hostile one of the same priority level.
    Hostile,
    /// The cost of encryption at rest by a KMS.
    Encryption,
    /// Memory and CPU of the idle cluster.
    Idle,
    /// Time without writes after a leader was stopped or killed.
    Failover,
    /// Connections through Services compared with direct ones, and 10 000 Services; takes root.
    Services,
    /// Questions to the cluster's DNS, and its memory with 10 000 Services.
    Dns,
    /// Starts of 1, 10 and 100 Pods on containerd compared with its calls alone, and the agent with those that run;
    /// takes root.
    Nodes,
}

#[tokio::main(worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if !options.programs.is_empty() {
        let arguments = options.arguments();
        let comparison = Comparison::measure(&options.programs, options.rounds, &arguments)?;
        print!("{comparison}");
        return report::write(&comparison, &options.output);
    }
    let report = measure(&options).await?;
    print!("{report}");
    report::write(&report, &options.output)
}

async fn measure(options: &Options) -> anyhow::Result<Report> {
    let mut report = Report::default();
    let asked = |part: &&Part| options.parts.is_empty() || options.parts.contains(part);
    for part in Part::value_variants().iter().filter(asked) {
        part.measure(options, &mut report).await?;
    }
    Ok(report)
}

impl Part {
    async fn measure(self, options: &Options, report: &mut Report) -> anyhow::Result<()> {
        match self {
            Self::Start => start::measure(report).await,
            Self::Writes => writes::measure(report, options.seconds).await,
            Self::Http => http::measure(report, options.seconds).await,
            Self::Watch => watch::measure(report, options.seconds).await,
            Self::Cascade => cascade::measure(report).await,
            Self::Tracing => tracing::measure(report, options.seconds).await,
            Self::Informer => informer::measure(report).await,
            Self::Definitions => definitions::measure(report).await,
            Self::Rbac => {
                rbac::measure(report);
                Ok(())
            }
            Self::Guard => guard::measure(report, options.seconds).await,
            Self::Protection => protection::measure(report, options.seconds).await,
            Self::Hostile => hostile::measure(report, options.seconds).await,
            Self::Encryption => encryption::measure(report, options.seconds).await,
            Self::Idle => idle::measure(report, options.idle).await,
            Self::Failover => failover::measure(report).await,
            Self::Services => services::measure(report, options.seconds).await,
            Self::Dns => dns::measure(report, options.seconds).await,
            Self::Nodes => nodes::measure(report, &options.pods, options.idle).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Options;

    #[test]
    fn help_txt_is_the_help_of_this_program() {
        let help = Options::command().render_long_help().to_string();
        let advice = "write it anew with the program's --help";
        assert_eq!(include_str!("help.txt"), help, "{advice}");
    }
}
