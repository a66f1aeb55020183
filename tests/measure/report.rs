//! The results, as a table and as JSON.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// All results of a run.
#[derive(Default, Deserialize, Serialize)]
pub struct Report {
    /// The results in the order in which they were added.
    pub figures: Vec<Figure>,
}

/// One result.
#[derive(Deserialize, Serialize)]
pub struct Figure {
    /// Tells it from all others.
    pub name: String,
    /// The value in its unit.
    pub value: f64,
    /// Empty if it is a ratio.
    pub unit: String,
}

impl Report {
    /// Adds a result and prints it at once, because a run takes minutes.
    pub fn add(&mut self, name: impl Into<String>, value: f64, unit: &str) {
        let figure = Figure {
            name: name.into(),
            value,
            unit: unit.to_owned(),
        };
        eprintln!("  {figure}");
        self.figures.push(figure);
    }
}

/// Writes results as JSON.
pub fn write(results: &impl Serialize, path: &Path) -> anyhow::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(path, serde_json::to_vec_pretty(results)?)?;
    Ok(())
}

/// Returns a number with the digits that its size makes worth reading.
pub fn number(value: f64) -> String {
    let digits = if value.abs() < 100.0 { 2 } else { 0 };
    format!("{value:.digits$}")
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.name, number(self.value), self.unit)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        writeln!(
            f,
            "\nMeasured on {cores} cores, etcd and all services on the same machine.\n"
        )?;
        writeln!(f, "| what | value | unit |\n|---|---:|---|")?;
        for Figure { name, value, unit } in &self.figures {
            writeln!(f, "| {name} | {} | {unit} |", number(*value))?;
        }
        Ok(())
    }
}
