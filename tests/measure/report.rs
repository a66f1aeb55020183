//! The results, as a table and as JSON.

use std::fmt;
use std::path::Path;

use serde::Serialize;

/// All results of a run.
#[derive(Default, Serialize)]
pub struct Report {
    figures: Vec<Figure>,
}

#[derive(Serialize)]
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
}

impl Report {
    /// Adds a result and prints it at once, because a run takes minutes.
    pub fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        let figure = Figure {
            name: name.into(),
            value,
            unit,
        };
        eprintln!("  {figure}");
        self.figures.push(figure);
    }

    /// Writes the results as JSON.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, serde_json::to_vec_pretty(self)?)?;
        Ok(())
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.value < 100.0 { 2 } else { 0 };
        write!(f, "{}: {:.digits$} {}", self.name, self.value, self.unit)
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
            let digits = if *value < 100.0 { 2 } else { 0 };
            writeln!(f, "| {name} | {value:.digits$} | {unit} |")?;
        }
        Ok(())
    }
}
