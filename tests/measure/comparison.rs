//! Measures several builds in turn, so that whatever else the machine does meets all of them alike.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use serde::Serialize;

use crate::report::{Figure, Report, number};

/// The figures of several builds.
#[derive(Default, Serialize)]
pub struct Comparison {
    programs: Vec<PathBuf>,
    figures: Vec<Compared>,
}

/// A figure, with the values of each build by round.
#[derive(Serialize)]
struct Compared {
    name: String,
    unit: String,
    values: Vec<Vec<f64>>,
}

impl Comparison {
    /// Measures each folder of `programs` in each round, every other round in reverse. A process of its own with
    /// `arguments` measures one build once.
    pub fn measure(
        programs: &[PathBuf],
        rounds: u32,
        arguments: &[String],
    ) -> anyhow::Result<Self> {
        let mut comparison = Self {
            programs: programs.to_vec(),
            ..Self::default()
        };
        for round in 0..rounds {
            let mut builds: Vec<_> = (0..programs.len()).collect();
            if round % 2 == 1 {
                builds.reverse();
            }
            for build in builds {
                eprintln!(
                    "round {} of {rounds}: {}",
                    round + 1,
                    programs[build].display()
                );
                comparison.add(build, run(&programs[build], arguments)?);
            }
        }
        Ok(comparison)
    }

    fn add(&mut self, build: usize, report: Report) {
        for Figure { name, value, unit } in report.figures {
            let found = self.figures.iter().position(|figure| figure.name == name);
            let at = found.unwrap_or_else(|| {
                let values = vec![Vec::new(); self.programs.len()];
                self.figures.push(Compared { name, unit, values });
                self.figures.len() - 1
            });
            self.figures[at].values[build].push(value);
        }
    }
}

/// Measures one build once.
fn run(programs: &Path, arguments: &[String]) -> anyhow::Result<Report> {
    let programs = programs.canonicalize();
    let programs = programs.context("the folder of programs does not exist")?;
    let output = tempfile::NamedTempFile::new()?;
    let status = Command::new(std::env::current_exe()?)
        .args(arguments)
        .arg("--output")
        .arg(output.path())
        .env("SETPOINT_PROGRAMS", programs)
        .stdout(Stdio::null())
        .status()?;
    anyhow::ensure!(status.success(), "the measurement fails: {status}");
    Ok(serde_json::from_slice(&std::fs::read(output.path())?)?)
}

/// A mean and its standard error, which is not known of a single value.
struct Mean {
    value: f64,
    error: Option<f64>,
}

impl Mean {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let value = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        Self {
            value,
            error: (values.len() > 1).then_some(error),
        }
    }

    /// Returns the mean of the ratios of two builds in the same round.
    fn of_ratios(values: &[f64], base: &[f64]) -> Self {
        let ratios = values.iter().zip(base).map(|(value, base)| value / base);
        Self::of(&ratios.collect::<Vec<_>>())
    }
}

impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&number(self.value))?;
        self.error
            .map_or(Ok(()), |error| write!(f, " ± {}", number(error)))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\nMeans of all rounds and their standard errors:\n")?;
        for (n, programs) in self.programs.iter().enumerate() {
            writeln!(f, "{}: {}", n + 1, programs.display())?;
        }
        let columns = 1..=self.programs.len();
        let builds: String = columns.clone().map(|n| format!(" {n} |")).collect();
        let ratios: String = columns.skip(1).map(|n| format!(" {n} ÷ 1 |")).collect();
        let rule = "---:|".repeat(2 * self.programs.len() - 1);
        writeln!(f, "\n| what | unit |{builds}{ratios}\n|---|---|{rule}")?;
        self.figures
            .iter()
            .try_for_each(|figure| write!(f, "{figure}"))
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| {} | {} |", self.name, self.unit)?;
        for values in &self.values {
            write!(f, " {} |", Mean::of(values))?;
        }
        for values in &self.values[1..] {
            write!(f, " {} |", Mean::of_ratios(values, &self.values[0]))?;
        }
        writeln!(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Mean;

    #[test]
    fn a_mean_has_the_standard_error_of_its_values() {
        assert_eq!(Mean::of(&[1.0, 2.0, 3.0]).to_string(), "2.00 ± 0.58");
        assert_eq!(Mean::of(&[4.0]).to_string(), "4.00");
    }

    #[test]
    fn ratios_are_those_of_the_same_round() {
        let ratios = Mean::of_ratios(&[2.0, 30.0], &[1.0, 10.0]);
        assert_eq!(ratios.to_string(), "2.50 ± 0.50");
    }
}
