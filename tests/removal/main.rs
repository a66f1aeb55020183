//! Takes permissions from services, one at a time, and sees that the test fails that needs it.

mod table;
mod trial;

use std::process::ExitCode;

use clap::Parser;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::IteratorRandom as _;

use table::Row;
use trial::{Outcome, Trials};

/// Takes permissions from services, one at a time, and runs the test that needs each, which must fail.
#[derive(Parser)]
#[command(version, bin_name = "tests/rules")]
struct Options {
    /// Only permissions whose text contains this, such as `scheduler:` or `leases`.
    #[arg(default_value = "")]
    of: String,
    /// The number of permissions, drawn at random; all by default.
    #[arg(long)]
    draw: Option<usize>,
    /// The seed of the draw.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Options {
    /// Returns the rows to try, in the order of the table.
    fn rows(&self) -> Vec<Row> {
        let all = table::rows().into_iter();
        let asked = all.filter(|row| row.permission.to_string().contains(&self.of));
        match self.draw {
            None => asked.collect(),
            Some(number) => {
                let mut random = StdRng::seed_from_u64(self.seed);
                let asked: Vec<_> = asked.enumerate().collect();
                let mut drawn = asked.into_iter().sample(&mut random, number);
                drawn.sort_by_key(|(at, _)| *at);
                drawn.into_iter().map(|(_, row)| row).collect()
            }
        }
    }
}

fn main() -> anyhow::Result<ExitCode> {
    let options = Options::parse();
    let (rows, trials) = (options.rows(), Trials::prepare()?);
    println!("{} permissions, seed {}", rows.len(), options.seed);
    let mut passed = 0;
    for row in &rows {
        let (outcome, time) = trials.run(row)?;
        println!(
            "{outcome:<9} {:3.0} s  {}  {}",
            time.as_secs_f64(),
            row.permission,
            row.test
        );
        passed += usize::from(outcome == Outcome::Refused);
    }
    println!("{passed} of {} are needed", rows.len());
    Ok(match passed == rows.len() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
