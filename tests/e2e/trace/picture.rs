//! The page of a trace in Jaeger's UI.

use std::path::Path;
use std::process::Command;

use setpoint_tests::eventually;
use setpoint_tests::trace::Trace;

use super::watched::Watched;

/// Renders the page and checks its text; does nothing if Chromium is not installed.
///
/// `SETPOINT_PICTURE` names a file to write a screenshot to.
pub fn shows(watched: &Watched, trace: &Trace) {
    if Command::new("chromium").arg("--version").output().is_err() {
        eprintln!("SKIPPED: chromium is not installed, so the page of the trace is not checked");
        return;
    }
    let url = format!("{}/trace/{}", watched.jaeger.url(), trace.id);
    let folder = watched.cluster.directory();
    eventually("the page shows the trace", || {
        let page = chromium(folder, &["--dump-dom", &url]);
        let words = [
            "deployment-controller",
            "node-agent",
            "schedule",
            "reconcile",
        ];
        let missing = words.iter().find(|word| !page.contains(**word));
        missing.map_or(Ok(()), |word| {
            Err(format!("no {word:?} in {} bytes", page.len()))
        })
    });
    if let Some(picture) = std::env::var_os("SETPOINT_PICTURE") {
        let screenshot = format!("--screenshot={}", Path::new(&picture).display());
        chromium(
            folder,
            &[
                "--window-size=1500,1100",
                "--hide-scrollbars",
                &screenshot,
                &url,
            ],
        );
    }
}

fn chromium(folder: &Path, arguments: &[&str]) -> String {
    let profile = format!("--user-data-dir={}", folder.join("chromium").display());
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=10000",
            &profile,
        ])
        .args(arguments)
        .output();
    let output = output.expect("Chromium is installed");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
