//! A class of 1,000 students, each with a machine, on the page of its teachers. One teacher may list the machines of the
//! whole cluster, as the daemon grants it to managers; another one only those of each namespace.

use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::stream::{self, StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::browser::{Browser, Page};
use super::world::{STUDENTS, World, name, namespace};
use super::{memory, milliseconds, most};
use crate::harness::{CONCURRENCY, Figures, now};

/// The teachers.
const WIDE: &str = "teacher-of-cluster";
const NARROW: &str = "teacher-of-namespaces";
/// The page.
const PAGE: &str = "/courses/bench";
/// The number of sessions that open the page for the first time, and how often each opens it again.
const SESSIONS: usize = 20;
const VISITS: usize = 10;
/// The number of pages that are open at the same time.
const OPEN: usize = 50;
/// The number of machines that are started.
const STARTED: usize = 100;
/// The beginning of the sentence on a page whose numbers are not complete.
const COUNTING: &str = "The numbers are not complete";
/// The minimum time between two updates of a page.
const UPDATE: Duration = Duration::from_millis(500);
/// The longest time until a change is told, and until all machines exist.
const PATIENCE: Duration = Duration::from_mins(2);
const API: &str = "/apis/crownlabs.polito.it/v1alpha2";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// All figures of a class.
pub async fn class(world: &World, figures: &mut Figures) -> Result<()> {
    eprintln!("dashboard: a class of {STUDENTS} …");
    prepare(world).await?;
    visits(world, figures).await?;
    totals(world, figures).await?;
    started(world, figures).await?;
    open(world, figures).await
}

/// Gives each student a machine of the course, and the teachers their rights.
async fn prepare(world: &World) -> Result<()> {
    let students = (0..STUDENTS).map(|number| student(world, number));
    stream::iter(students).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
    for (teacher, role) in [
        (WIDE, "crownlabs-manage-instances"),
        (WIDE, "crownlabs-manage-tenants"),
        (WIDE, "crownlabs-view-workspaces"),
        (WIDE, "crownlabs-view-templates"),
        (NARROW, "crownlabs-manage-tenants"),
        (NARROW, "crownlabs-view-workspaces"),
        (NARROW, "crownlabs-view-templates"),
    ] {
        let body = binding(&format!("{teacher}-{role}"), teacher, role);
        world.bench.send("POST", &format!("{RBAC}/clusterrolebindings"), &body).await?;
    }
    world.bench.settle()
}

/// Adds the label of the course to a student, and creates a machine, as the daemon does.
async fn student(world: &World, number: usize) -> Result<()> {
    let (student, of) = (name(number), namespace(number));
    let label = json!({"metadata": {"labels": {"crownlabs.polito.it/workspace-bench": "user"}}});
    world.bench.send("PATCH", &format!("{API}/tenants/{student}"), &label).await?;
    let instances = format!("{API}/namespaces/{of}/instances");
    let mut body = machine("seat", &student, "vm");
    body["metadata"]["labels"] =
        json!({"crownlabs.polito.it/workspace": "bench", "crownlabs.polito.it/managed-by": "instance"});
    world.bench.send("POST", &instances, &body).await?;
    let condition = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "The Instance can be used",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let url = format!("https://machines.example.org/{student}");
    let status = json!({"status": {"phase": "Ready", "url": url, "conditions": [condition]}});
    world.bench.send("PATCH", &format!("{instances}/seat/status"), &status).await?;
    let body = binding(NARROW, NARROW, "crownlabs-manage-instances");
    world.bench.send("POST", &format!("{RBAC}/namespaces/{of}/rolebindings"), &body).await.map(drop)
}

fn machine(name: &str, student: &str, template: &str) -> Value {
    let spec = json!({
        "template.crownlabs.polito.it/TemplateRef": {"name": template, "namespace": "workspace-bench"},
        "tenant.crownlabs.polito.it/TenantRef": {"name": student},
    });
    json!({"apiVersion": "crownlabs.polito.it/v1alpha2", "kind": "Instance", "metadata": {"name": name}, "spec": spec})
}

fn binding(name: &str, user: &str, role: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    })
}

/// Returns a session of a teacher whose token is cached.
async fn session(world: &World, teacher: &str, number: usize) -> Result<Browser> {
    let browser = world.session_of(teacher, &[], number)?;
    browser.get("/account").await?;
    Ok(browser)
}

/// Returns the number of rows of a page.
fn rows(page: &Page) -> usize {
    page.0.matches("<tr id=\"row-").count()
}

/// The page with rights in the whole cluster: the first visit of each session, later ones, and updates.
async fn visits(world: &World, figures: &mut Figures) -> Result<()> {
    let _daemon = world.daemon().await?;
    let (mut first, mut later) = (Vec::new(), Vec::new());
    for number in 0..SESSIONS {
        let browser = session(world, WIDE, number).await?;
        for visit in 0..=VISITS {
            let begin = Instant::now();
            let page = browser.get(PAGE).await?;
            let time = milliseconds(begin.elapsed());
            let times = if visit == 0 { &mut first } else { &mut later };
            times.push(time);
            ensure!(
                rows(&page) == 100 && !page.0.contains(COUNTING),
                "{} rows: {}",
                rows(&page),
                page.notice()
            );
        }
    }
    figures.add("class of 1000: first visit: 95 %", most(first), "ms", Some(300.0));
    figures.add("class of 1000: later visits: 95 %", most(later), "ms", Some(300.0));
    let browser = session(world, WIDE, SESSIONS).await?;
    let mut stream = browser.listen(&browser.get(PAGE).await?).await?;
    let mut times = Vec::new();
    for number in 0..SESSIONS {
        // Events of the last writes may still arrive.
        while let Ok(changed) = timeout(UPDATE * 4, stream.changed()).await {
            changed?;
            browser.fetch_at(PAGE).await?;
        }
        let title = format!("Renamed {number}");
        let path = format!("{API}/namespaces/{}/instances/seat", namespace(0));
        world.bench.send("PATCH", &path, &json!({"spec": {"prettyName": title}})).await?;
        timeout(PATIENCE, stream.changed()).await.context("a change is not told")??;
        let begin = Instant::now();
        let page = browser.fetch_at(PAGE).await?;
        times.push(milliseconds(begin.elapsed()));
        ensure!(page.0.contains(&title), "the change is not on the page");
    }
    figures.add("class of 1000: update: 95 %", most(times), "ms", Some(300.0));
    Ok(())
}

/// The page with rights in each namespace: the first rows, and the time until the numbers are complete.
async fn totals(world: &World, figures: &mut Figures) -> Result<()> {
    let _daemon = world.daemon().await?;
    let (mut shown, mut complete) = (Vec::new(), Vec::new());
    for number in 0..SESSIONS {
        let browser = session(world, NARROW, number).await?;
        let begin = Instant::now();
        let mut page = browser.get(PAGE).await?;
        shown.push(milliseconds(begin.elapsed()));
        ensure!(rows(&page) == 100, "{} rows: {}", rows(&page), page.notice());
        let mut stream = browser.listen(&page).await?;
        while page.0.contains(COUNTING) {
            timeout(PATIENCE, stream.changed()).await.context("the numbers stay incomplete")??;
            page = browser.fetch_at(PAGE).await?;
        }
        complete.push(milliseconds(begin.elapsed()));
    }
    figures.add("class of 1000, rights by namespace: first rows: 95 %", most(shown), "ms", Some(300.0));
    figures.add("class of 1000, rights by namespace: totals: 95 %", most(complete), "ms", Some(3_000.0));
    Ok(())
}

/// 100 machines: by 100 commands at the same time, and by one form.
async fn started(world: &World, figures: &mut Figures) -> Result<()> {
    let begin = Instant::now();
    let commands = (0..STARTED).map(|number| command(world, number)).collect::<Result<Vec<_>>>()?;
    for mut command in commands {
        ensure!(command.wait()?.success(), "kubectl create failed");
    }
    let by_commands = begin.elapsed().as_secs_f64();
    let _daemon = world.daemon().await?;
    let browser = session(world, WIDE, 0).await?;
    let people: Vec<String> = (STARTED..STARTED * 2).map(|number| format!("&who={}", name(number))).collect();
    let people = people.concat();
    let form = format!("id=abcdefghijklmnop-{}&template=container{people}", now().as_second());
    let path = format!("{PAGE}/actions/start");
    let begin = Instant::now();
    let mut page = browser.submit(&path, form.clone()).await?;
    // The script sends the form again while rows are left.
    while page.0.contains("data-automatic") {
        ensure!(begin.elapsed() < PATIENCE, "the start is not complete: {}", page.notice());
        page = browser.submit(&path, form.clone()).await?;
    }
    let by_form = begin.elapsed().as_secs_f64();
    let created = page.0.matches("<td><span class=\"badge good\">Started</span></td>").count();
    ensure!(created == STARTED, "{created} machines were started: {}", page.notice());
    figures.add("100 starts by kubectl create at the same time", by_commands, "s", None);
    figures.add("100 starts by one form", by_form, "s", Some(by_commands * 1.1));
    Ok(())
}

/// Starts `kubectl create` of a machine.
fn command(world: &World, number: usize) -> Result<Child> {
    let mut command = world.bench.cluster.kubectl();
    command.args(["create", "-f", "-", "-n", &namespace(number)]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let body = machine("by-kubectl", &name(number), "container").to_string();
    child.stdin.take().context("a pipe")?.write_all(body.as_bytes())?;
    Ok(child)
}

/// 50 open pages of 100 rows, in sessions of their own, and a change that all of them show.
async fn open(world: &World, figures: &mut Figures) -> Result<()> {
    let daemon = world.daemon().await?;
    let before = memory(&daemon)?;
    let mut pages = Vec::new();
    for number in 0..OPEN {
        let browser = session(world, WIDE, number).await?;
        let stream = browser.listen(&browser.get(PAGE).await?).await?;
        pages.push((browser, stream));
    }
    let path = format!("{API}/namespaces/{}/instances/seat", namespace(1));
    world.bench.send("PATCH", &path, &json!({"spec": {"prettyName": "Changed for all"}})).await?;
    for (browser, stream) in &mut pages {
        timeout(PATIENCE, stream.changed()).await.context("a change is not told")??;
        browser.fetch_at(PAGE).await?;
    }
    sleep(UPDATE * 4).await;
    daemon.await_idle()?;
    let with = memory(&daemon)?;
    figures.add("50 pages of a class of 1000: memory", with, "MiB", Some(64.0));
    figures.add("50 pages of a class of 1000: memory more than without", with - before, "MiB", None);
    figures.add("50 pages of a class of 1000: peak memory", daemon.peak_mebibytes()?, "MiB", None);
    Ok(())
}
