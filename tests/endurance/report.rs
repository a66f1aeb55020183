//! The report, as a table and as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::memory::Figures;

/// All results of a run.
#[derive(Serialize)]
pub struct Report {
    pub seed: u64,
    pub seconds: u64,
    pub nodes: usize,
    /// The number of actions of the user, of each kind.
    pub actions: BTreeMap<String, u64>,
    /// The number of faults of each process and kind.
    pub faults: BTreeMap<String, u64>,
    /// The number of objects at the end, by resource.
    pub objects: BTreeMap<String, usize>,
    /// The number of writes to etcd that were replayed.
    pub revisions: u64,
    /// Seconds from the last action until all conditions were met.
    pub settled: Option<f64>,
    pub processes: Vec<Figures>,
    /// All violations; empty if the soak has passed.
    pub problems: Vec<String>,
}

impl Report {
    /// Writes the report as JSON.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, serde_json::to_vec_pretty(self)?)?;
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            seconds,
            nodes,
            revisions,
            ..
        } = self;
        writeln!(
            f,
            "\nSoak of {seconds} s on {nodes} nodes with seed {seed}, {revisions} writes to etcd.\n"
        )?;
        counts(f, "actions", &self.actions)?;
        counts(f, "faults", &self.faults)?;
        counts(f, "objects at the end", &self.objects)?;
        writeln!(
            f,
            "| process | MiB at 1/4 | 1/2 | end | peak | MiB/h, second half | restarts | CPU s |\n|---|---:|---:|---:|---:|---:|---:|---:|"
        )?;
        for process in &self.processes {
            let Figures {
                process,
                at_quarter,
                at_half,
                at_end,
                peak,
                slope,
                restarts,
                cpu_seconds,
                ..
            } = process;
            writeln!(
                f,
                "| {process} | {at_quarter:.1} | {at_half:.1} | {at_end:.1} | {peak:.1} | {slope:.1} | {restarts} | {cpu_seconds:.1} |"
            )?;
        }
        match self.settled {
            Some(settled) => writeln!(
                f,
                "\nAll conditions held {settled:.1} s after the last action."
            )?,
            None => writeln!(f, "\nNot all conditions held in time.")?,
        }
        writeln!(f, "{} problems", self.problems.len())?;
        self.problems
            .iter()
            .try_for_each(|problem| writeln!(f, "* {problem}"))
    }
}

fn counts<N: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    counts: &BTreeMap<String, N>,
) -> fmt::Result {
    writeln!(f, "| {title} | number |\n|---|---:|")?;
    for (name, number) in counts {
        writeln!(f, "| {name} | {number} |")?;
    }
    writeln!(f)
}
