//! The interface as documented, tested by schemathesis, which sends requests that match the description, and others.

use std::path::Path;
use std::process::Command;

use super::{ALLOWED, SERVER, STUDENT, Site};

/// How long each run may take, in seconds.
const SECONDS: u32 = 30;

/// The maximum number of runs: on a busy machine, one run sends few requests.
const RUNS: u32 = 10;

/// Runs schemathesis as a client with this address. Panics with its output if a check fails.
fn run(site: &Site, client: &str, seed: u32, report: &Path) {
    let base = format!("http://127.0.0.1:{}", site.port);
    let output = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis.sh"))
        .args(["run", &format!("{base}/api/openapi.json")])
        .args(["--checks", "all"])
        .args(["--max-time", &SECONDS.to_string(), "--max-examples", "200", "--workers", "1"])
        .args(["--seed", &seed.to_string()])
        .args(["--request-timeout", "30", "--continue-on-failure", "--no-color"])
        .args([
            "--suppress-health-check",
            "all",
            "--warnings",
            "off",
            "--report",
            "json",
            "--report-json-path",
        ])
        .arg(report)
        .args(["--header", &format!("X-Forwarded-For: {client}")])
        .env("PYTHONUTF8", "1")
        .output()
        .expect("schemathesis runs");
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}\n{}", said[0], said[1]);
}

/// The responses that the runs must have seen to be meaningful.
const DEPTH: [&str; 5] = [
    "method=\"PUT\",code=\"201\"",
    "method=\"PUT\",code=\"200\"",
    "method=\"PUT\",code=\"400\"",
    "method=\"PUT\",code=\"422\"",
    "method=\"DELETE\",code=\"200\"",
];

/// The number of requests whose series contain this text.
fn count(metrics: &str, series: &str) -> u64 {
    let lines =
        metrics.lines().filter(|line| line.starts_with("exam_agent_requests_total") && line.contains(series));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[test]
fn no_request_causes_a_server_error() {
    let site = Site::start("exam-fuzz", &format!("{ALLOWED}, clientQps: 10000, clientMaxBurst: 10000"));
    let folder = tempfile::tempdir().expect("a folder");
    // More runs follow until they have seen these responses.
    let is_deep = (1..=RUNS).any(|seed| {
        run(&site, SERVER, seed, &folder.path().join("server.json"));
        let metrics = site.daemon.metrics();
        DEPTH.iter().all(|series| count(&metrics, series) > 0) && count(&metrics, "") > 300
    });
    let metrics = site.daemon.metrics();
    assert!(is_deep, "{metrics}");
    assert_eq!(count(&metrics, "code=\"5"), 0, "{metrics}");
    let instances = site.lab.list("instances", &site.namespace());
    for instance in &instances {
        assert_eq!(
            instance["spec"]["tenant.crownlabs.polito.it/TenantRef"]["name"], "service-tenant",
            "{instance}"
        );
        let labels = instance["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        assert!(!labels.keys().any(|key| key.starts_with("crownlabs.polito.it/")), "{instance}");
    }
    // A student cannot create, change or delete anything.
    let versions = || -> Vec<String> {
        let instances = site.lab.list("instances", &site.namespace());
        instances
            .iter()
            .map(|each| format!("{} {}", each["metadata"]["name"], each["metadata"]["resourceVersion"]))
            .collect()
    };
    let before = versions();
    run(&site, STUDENT, 1, &folder.path().join("student.json"));
    assert_eq!(versions(), before);
}
