//! The state of an installation as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{DaemonPod, Definition, Installation, KindCount, LeaderLease, NotRead, Problem, SHOWN_PROBLEMS};
use crate::api::reason::Reason;
use crate::api::shown::{message, shown};
use crate::api::why::span;
use crate::explain::words::{count, sentence, table};
use crate::runtime::readiness::state::VERSION;

/// Returns the text, with the loops of all pods and all problems, or with the loops of the leader and the oldest
/// problems.
pub fn text(found: &Installation, all: bool, now: Timestamp) -> String {
    let mut text = head(found, now);
    section(&mut text, "Pods", &table(&pods(&found.pods), "  "));
    section(&mut text, "Loops", &table(&loops(&found.pods, all), "  "));
    section(&mut text, "Faults", &faults(&found.pods));
    section(&mut text, "Systems outside of the cluster", &table(&servers(found), "  "));
    section(&mut text, "CRDs", &table(&definitions(&found.definitions), "  "));
    section(&mut text, "Objects", &table(&kinds(&found.kinds), "  "));
    let (heading, lines) = problems(&found.problems, all, now);
    section(&mut text, &heading, &lines);
    section(&mut text, "Not read", &found.not_read.iter().map(not_read).collect::<String>());
    text
}

/// Appends a heading and the lines below it, if there are any.
fn section(text: &mut String, heading: &str, lines: &str) {
    if !lines.is_empty() {
        let _ = write!(text, "\n{heading}:\n{lines}");
    }
}

/// Adds a heading to the rows of a table, if there are any.
fn headed<const N: usize>(heading: [&str; N], rows: Vec<[String; N]>) -> Vec<[String; N]> {
    if rows.is_empty() { rows } else { [vec![heading.map(str::to_owned)], rows].concat() }
}

/// The versions of the client and the API server, and the leaders.
fn head(found: &Installation, now: Timestamp) -> String {
    let mut text = format!("Client       {VERSION}\nAPI server   {}\n", shown(&found.api_server));
    for lease in &found.leases {
        let _ = writeln!(text, "Leader       {}", message(&leader(lease, now)));
    }
    if found.leases.is_empty() {
        text.push_str("Leader       unknown: no Lease of a daemon was found\n");
    }
    text
}

fn leader(lease: &LeaderLease, now: Timestamp) -> String {
    let LeaderLease { namespace, name, selector, since, renewed, .. } = lease;
    let age = |time: &Option<Time>| time.as_ref().map_or_else(|| "?".to_owned(), |time| span(time, now));
    let of = format!("Lease {namespace}/{name}, selector {selector}");
    if lease.is_held(now) {
        return format!("{}, for {}, renewed {} ago ({of})", lease.pod(), age(since), age(renewed));
    }
    let holder = if lease.holder.is_empty() { "it was released" } else { "it has expired" };
    format!("none: {holder} {} ago ({of})", age(renewed))
}

fn pods(pods: &[DaemonPod]) -> Vec<[String; 5]> {
    let row = |pod: &DaemonPod| {
        let name = format!("{}/{}", pod.namespace, pod.name);
        let (role, ready) = (if pod.leads { "leader" } else { "" }, if pod.is_ready { "yes" } else { "no" });
        [name, pod.version(), ready.to_owned(), pod.restarts.to_string(), role.to_owned()]
    };
    headed(["POD", "VERSION", "READY", "RESTARTS", "ROLE"], pods.iter().map(row).collect())
}

/// The loops by name, state and message, with the pods. Without `all`, a loop of a standby that the leader also has is
/// shown only if it is not ready.
fn loops(pods: &[DaemonPod], all: bool) -> Vec<[String; 4]> {
    let of = |pod: &DaemonPod| pod.state.iter().flat_map(|state| state.loops.clone()).collect::<Vec<_>>();
    let leading: Vec<_> = pods.iter().filter(|pod| pod.leads).flat_map(of).collect();
    let mut rows = BTreeMap::<[String; 3], Vec<&str>>::new();
    for pod in pods {
        for it in of(pod) {
            let is_shown =
                all || pod.leads || it.state != "ready" || leading.iter().all(|led| led.name != it.name);
            if is_shown {
                rows.entry([it.name, it.state, it.message]).or_default().push(&pod.name);
            }
        }
    }
    let row = |([name, state, message], pods): ([String; 3], Vec<&str>)| {
        let pods = match &*pods {
            [pod] => (*pod).to_owned(),
            pods => count(pods.len(), "pod"),
        };
        [name, state, pods, message]
    };
    headed(["LOOP", "STATE", "POD", "MESSAGE"], rows.into_iter().map(row).collect())
}

fn faults(pods: &[DaemonPod]) -> String {
    let mut lines = String::new();
    for pod in pods {
        for fault in pod.state.iter().flat_map(|state| &state.faults) {
            let line = format!("{}: {}: {}", pod.name, fault.about, fault.message);
            let _ = writeln!(lines, "  {}", message(&line));
        }
    }
    lines
}

fn servers(found: &Installation) -> Vec<[String; 3]> {
    let servers = found.servers().into_iter().map(|((system, server), outage)| {
        let state = outage.map_or_else(
            || "works".to_owned(),
            |outage| format!("failing for {} s, {}: {}", outage.seconds, outage.effect, outage.error),
        );
        [system.to_owned(), server.to_owned(), state]
    });
    headed(["SYSTEM", "SERVER", "STATE"], servers.collect())
}

fn definitions(definitions: &[Definition]) -> Vec<[String; 3]> {
    let row = |definition: &Definition| {
        let Definition { name, is_installed, is_established, served, stored } = definition;
        let state = match (is_installed, is_established) {
            (false, _) => "not installed",
            (true, false) => "not established",
            (true, true) => "established",
        };
        let version = |version: &String| {
            if version == stored { format!("{version} (stored)") } else { version.clone() }
        };
        [name.clone(), served.iter().map(version).collect::<Vec<_>>().join(", "), state.to_owned()]
    };
    headed(["CRD", "VERSIONS", "STATE"], definitions.iter().map(row).collect())
}

fn kinds(kinds: &[KindCount]) -> Vec<[String; 3]> {
    let row = |count: &KindCount| {
        let states = count.states.iter().map(|(state, number)| format!("{state} {number}"));
        [count.kind.clone(), count.total().to_string(), states.collect::<Vec<_>>().join(", ")]
    };
    headed(["KIND", "TOTAL", "STATES"], kinds.iter().map(row).collect())
}

/// The heading and the lines of the problems.
fn problems(problems: &[Problem], all: bool, now: Timestamp) -> (String, String) {
    let shown = if all { problems.len() } else { problems.len().min(SHOWN_PROBLEMS) };
    let heading = if shown < problems.len() {
        format!("Problems, oldest first ({shown} of {}; --all shows all)", problems.len())
    } else {
        "Problems, oldest first".to_owned()
    };
    let line = |problem: &Problem| {
        let (about, condition) = (problem.about(), &problem.condition);
        let roles = Reason::actors(&condition.reason).unwrap_or_default();
        let who = if roles.is_empty() { String::new() } else { format!("; can act: {}", roles.join(", ")) };
        let line = format!("{} {}: {}{who}", about.kind, about.place(), sentence(condition, now));
        format!("  {}\n", message(&line))
    };
    (heading, problems.iter().take(shown).map(line).collect())
}

fn not_read(NotRead { what, reason }: &NotRead) -> String {
    format!("  {}\n", message(&format!("{what}: {reason}")))
}
